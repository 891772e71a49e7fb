"""Presets are the papers: every value beside the sentence that says it, and runs that take all of them over."""

from __future__ import annotations

import dataclasses
import inspect
import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_corpus import refused
from tiny_teachers import write_tiny_model

from stillvec import Corpus, distill, distill_all, plan, run, train
from stillvec.cli import main
from stillvec.errors import StillvecError, StillvecWarning
from stillvec.formats import read_manifest
from stillvec.learners import LEARNERS
from stillvec.pipeline.settings import Distillation, resolve_presets
from stillvec.registry import settings_from
from stillvec.verbs.distillation import Arguments, _Call

METHODS = {"gupta-jaggi-2021": "x2static", "wang-2020": "attentive_skipgram", "zheng-2022": "context_to_vec"}
FREE = {"settings", "seed", "stream"}  # not decided by a paper
UNUSED = {  # with the other values of the preset
    "gupta-jaggi-2021": {"ridge"},
    "wang-2020": {"ridge"},
    "zheng-2022": {"ridge", "attention", "clip"},
}
TRAINED_AS_IS = {
    "whiten": (False, "ours: the paper transforms nothing"),
    "bias": (False, "ours: no bias in the paper's equations"),
    "start": ("random", "ours: the paper names no start; word2vec's"),
    "directions": (0, "ours: the paper removes nothing from the result"),
}
# setting: value, and the words of the paper that say it; "ours: reason" where it says nothing
SETTINGS: dict[str, dict[str, tuple[object, str]]] = {
    "gupta-jaggi-2021": {
        "context": ("sentence", "in the sentence case (3)"),
        "layer": ("last", "distilled from the last representation layers"),
        "epochs": (1, "table 1: Epoch(s) trained"),
        "rate": (1e-3, "table 1: Initial Learning Rate"),
        "decay": ("constant", "ours: the paper names no schedule"),
        "batch": (128, "table 1: Batch Size"),
        "negatives": (10, "table 1: Number of Negatives Sampled"),
        "shared_negatives": (0, "N is the set of negative target samples"),
        "power": (0.5, "ours: fastText's, whose subsampling the paper takes over"),
        "subsample": (5e-6, "table 1: Target Word Subsampling hyperparameter"),
        "min_sentences": (3, "remove all paragraphs with less than 3 sentences or 140 characters"),
        **TRAINED_AS_IS,
    },
    "wang-2020": {
        "dim": (300, "The dimension of word embedding vectors d_emb is 300"),
        "layer": ("last", "to generate the final representations"),
        "window": (5, "the window size for context words ws is set as 5"),
        "pool": ("attention", "we apply the attention mechanism to aggregate context words"),
        "attention": (1.0, "by using u_wi as the query vector and v'_j as the key vectors: not scaled"),
        "include_center": (False, "equation 13: j from i - ws to i - 1 and from i + 1 to i + ws"),
        "min_length": (10, "sentences with length 10 to 40 are selected"),
        "max_length": (40, "sentences with length 10 to 40 are selected"),
        "epochs": (1, "ours: the paper names no epochs"),
        "optimizer": ("sgd", "optimized through stochastic gradient descent"),
        "rate": (0.025, "the initial learning rate for SGD"),
        "decay": ("linear", "ours: the paper says initial, but not how it falls; word2vec's"),
        "clip": (5.0, "gradients are clipped at norm 5"),
        "batch": (16, "ours: the paper names no batch; for speed"),
        "negatives": (5, "the number of negative samples k is 5"),
        "shared_negatives": (0, "k is the number of negative samples"),
        "power": (0.75, "the unigram distribution U(w) raised to the 3/4 power"),
        "subsample": (0.0, "it cannot be directly used in our method"),
        "projection_rate": (1.0, "ours: W is trained as the table is"),
        **TRAINED_AS_IS,
    },
    "zheng-2022": {
        "dim": (300, "the size of ui is demb = 300"),
        "layer": ("last", "the output representation oi"),
        "window": (5, "the value of w's is the same as that of ws, e.g., 5"),
        "pool": ("sum", "equation 5: the sum of u'_i+j"),
        "context_weight": (0.5, "the weight parameter λ1 and λ2 are the same"),
        "activation": ("none", "φ is an optional nonlinear function"),
        "norm_reward": (1.0, "ours: each hyperparameter ηi denotes a weight, without values; all are 1"),
        "normalize": (False, "the inner product of the normalized vectors can be used: offered"),
        "include_center": (False, "equation 5: 1 ≤ |j| ≤ ws"),
        "min_length": (10, "Sentences between 10 and 40 in length were selected during training"),
        "max_length": (40, "Sentences between 10 and 40 in length were selected during training"),
        "epochs": (1, "ours: the paper names no epochs"),
        "optimizer": ("adam", "ours: the paper names no optimizer"),
        "rate": (1e-3, "ours: Adam's usual one"),
        "decay": ("linear", "ours: the paper names no schedule"),
        "batch": (128, "ours: the paper names no batch"),
        "negatives": (5, "ours: the paper gives no k; as Wang et al."),
        "shared_negatives": (0, "k is the number of negative samples"),
        "power": (0.75, "ours: the paper only says a noise distribution; as Wang et al."),
        "subsample": (0.0, "ours: the paper names no subsampling"),
        "projection_rate": (1.0, "W1 and W2 are trainable parameters"),
        **TRAINED_AS_IS,
    },
}
RUN_SETTINGS: dict[str, dict[str, tuple[object, str]]] = {
    "gupta-jaggi-2021": {
        "contexts": (None, "a corpus of approximately 54 Million sentences and 1.28 Billion words, all of it"),
        "min_count": (10, "table 1: Minimum Word Count"),
        "max_words": (750_000, "table 1: Max Vocab. Size"),
        "min_sentences": (3, "remove all paragraphs with less than 3 sentences or 140 characters"),
        "min_characters": (140, "remove all paragraphs with less than 3 sentences or 140 characters"),
        "lowercase": (True, "lowercase the characters"),
    },
    "wang-2020": {
        "contexts": (None, "57 million sentences with 1.1 billion tokens, all of them"),
        "min_count": (5, "We ignore the words that appear less than five times"),
    },
    "zheng-2022": {
        "contexts": (None, "about 57 million sentences and 1.1 billion words, all of them"),
        "min_count": (5, "ours: the paper gives none; as Wang et al., whose sentences it selects"),
        "max_words": (150_000, "The total number of vocabularies is 150k"),
    },
}


# ---- the values


@pytest.mark.parametrize("preset", [*METHODS])
def test_each_value_of_a_preset_is_the_papers(preset: str) -> None:
    kind: Any = LEARNERS[METHODS[preset]]
    assert [*kind.PRESETS] == [*kind.RUN_PRESETS] == [preset]
    assert dict(kind.PRESETS[preset]) == {name: value for name, (value, _) in SETTINGS[preset].items()}
    assert dict(kind.RUN_PRESETS[preset]) == {name: value for name, (value, _) in RUN_SETTINGS[preset].items()}
    assert all(evidence for table in (SETTINGS, RUN_SETTINGS) for _, evidence in table[preset].values())


@pytest.mark.parametrize("preset", [*METHODS])
def test_a_preset_relies_on_no_default(preset: str) -> None:
    kind: Any = LEARNERS[METHODS[preset]]
    fields = {field.name for field in dataclasses.fields(kind)}
    assert fields - FREE - UNUSED[preset] == {*SETTINGS[preset]}
    assert {*RUN_SETTINGS[preset]} <= {field.name for field in dataclasses.fields(Distillation)}


@pytest.mark.parametrize("preset", [*METHODS])
def test_what_a_preset_leaves_out_has_no_effect(preset: str) -> None:
    learner: Any = settings_from(LEARNERS[METHODS[preset]], {"settings": preset})
    assert not learner.whiten, "ridge is for whitening and for the closed start"
    assert learner.start == "random"
    if preset == "zheng-2022":
        assert (learner.pool, learner.optimizer) == ("sum", "adam"), "attention is for attention, clip for sgd"


@pytest.mark.parametrize("preset", [*METHODS])
def test_the_page_of_a_paper_lists_its_settings(preset: str) -> None:
    page = Path(__file__).parents[1] / "docs" / "papers" / f"{METHODS[preset].replace('_', '-')}.md"
    section = page.read_text("utf-8").partition("## Settings\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    listed = [(name.strip(" `"), value.strip(" `")) for name, value in rows]
    of_run = [(name, _spell(name, value)) for name, (value, _) in RUN_SETTINGS[preset].items()]
    assert listed == of_run + [(name, _spell(name, value)) for name, (value, _) in SETTINGS[preset].items()]


def _spell(name: str, value: object) -> str:
    if value is None:
        return "all"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


# ---- which of them a run takes over


def resolved(method: str, *given: str, **settings: Any) -> tuple[Distillation, dict[str, Any], dict[str, Any]]:
    return resolve_presets(Distillation(method=method, **settings), given)


@pytest.mark.parametrize("preset", [*METHODS])
def test_a_preset_sets_the_run(preset: str) -> None:
    settings, agreed, left = resolved(f"{METHODS[preset]}:settings={preset}")
    wanted = {name: value for name, (value, _) in RUN_SETTINGS[preset].items()}
    assert agreed == wanted
    assert not left
    assert {name: getattr(settings, name) for name in wanted} == wanted


def test_what_is_given_wins_even_if_it_is_the_default() -> None:
    method = "x2static:settings=gupta-jaggi-2021"
    settings, agreed, left = resolved(method, "contexts", "min_count", contexts=20, min_count=5)
    assert (settings.contexts, settings.min_count, settings.max_words) == (20, 5, 750_000)
    assert not {"contexts", "min_count"} & {*agreed, *left}


def test_without_a_preset_nothing_is_set() -> None:
    for method in ("x2static", "auto,aggregate", "x2static:settings=stillvec"):
        assert resolved(method) == (Distillation(method=method), {}, {})


def test_several_methods_take_over_what_all_of_their_presets_agree_on() -> None:
    wang, zheng = "attentive_skipgram:settings=wang-2020", "context_to_vec:settings=zheng-2022"
    settings, agreed, left = resolved(f"{wang},{zheng}")
    assert agreed == {"contexts": None, "min_count": 5}
    assert left == {"max_words": 150_000}
    assert settings.max_words is None
    settings, agreed, left = resolved(f"{wang},{wang},epochs=2")
    assert agreed == {"contexts": None, "min_count": 5}
    assert not left
    settings, agreed, left = resolved(f"{wang},aggregate")
    assert not agreed
    assert left == {"contexts": None, "min_count": 5}
    assert settings.contexts == Distillation().contexts
    assert resolved(f"{wang},aggregate", "contexts", contexts=3)[2] == {"min_count": 5}


def test_a_methods_own_setting_wins_over_the_run_preset() -> None:
    settings, agreed, _ = resolved("x2static:settings=gupta-jaggi-2021,context=paragraph,min_sentences=1")
    assert settings.min_sentences == agreed["min_sentences"] == 1
    (learner,) = settings.learners(1).values()
    assert learner.min_sentences == 1  # type: ignore[attr-defined]
    settings, _, _ = resolved("x2static:settings=gupta-jaggi-2021", "min_sentences", min_sentences=2)
    (learner,) = settings.learners(1).values()
    assert learner.min_sentences == settings.min_sentences == 2  # type: ignore[attr-defined]


# ---- runs

LONG = "the house by the sea is old and the dog of the house runs to the old house by the sea"
COMMON = " ".join(f"{LONG.capitalize()}." for _ in range(3))  # 3 sentences, over 140 characters
RARE = f"{LONG.capitalize()} with zebra. {LONG.capitalize()}. {LONG.capitalize()}."
FEW_SENTENCES = f"{LONG.capitalize()} and {LONG} with river. {LONG.capitalize()} with river."
FEW_CHARACTERS = "The river is old. The river runs. The river."
TEXT = [COMMON] * 8 + [RARE] * 2 + [FEW_SENTENCES] * 8 + [FEW_CHARACTERS] * 8
PAPERS = {name: f"{method}:settings={name},batch=4" for name, method in METHODS.items()}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("presets") / "teacher"
    write_tiny_model(folder, "bert")
    return str(folder)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(TEXT), "utf-8")
    return file


@pytest.mark.parametrize("context", ["sentence", "paragraph"])
def test_gupta_and_jaggis_run_is_the_papers(context: str, model: str, corpus: Path) -> None:
    vectors = distill(corpus, teacher=model, method=f"{PAPERS['gupta-jaggi-2021']},context={context}", device="cpu")
    facts = vectors.provenance
    assert "house" in vectors.words
    assert "river" not in vectors.words, "its paragraphs are too short"
    assert "zebra" not in vectors.words, "it occurs twice"
    assert facts["corpus"]["paragraphs"] == 10
    assert facts["read"]["sentences"] == (30 if context == "sentence" else 10), "all of the text is read"
    assert facts["read"]["contexts"] == "all"
    recorded = facts["distillation"]
    assert {name: recorded[name] for name in RUN_SETTINGS["gupta-jaggi-2021"]} == {
        name: value for name, (value, _) in RUN_SETTINGS["gupta-jaggi-2021"].items()
    }


@pytest.mark.parametrize("preset", ["wang-2020", "zheng-2022"])
def test_the_other_papers_runs_read_everything(preset: str, model: str, corpus: Path) -> None:
    facts = distill(corpus, teacher=model, method=PAPERS[preset], device="cpu").provenance
    assert facts["corpus"]["paragraphs"] == len(TEXT)
    assert facts["read"]["sentences"] == 3 * 10 + 2 * 8 + 3 * 8
    assert facts["read"]["contexts"] == "all"
    assert facts["distillation"]["contexts"] is None
    assert "min_sentences" not in facts["distillation"]


def test_flags_win(model: str, corpus: Path, tmp_path: Path) -> None:
    flags = ["--contexts", "20", "--min-count", "2", "--min-sentences", "1", "--min-characters", "0"]
    call = ["distill", str(corpus), "--teacher", model, "--out", str(tmp_path / "out"), "--device", "cpu", "--quiet"]
    assert main([*call, "--method", PAPERS["gupta-jaggi-2021"], *flags]) == 0
    manifest = read_manifest(tmp_path / "out")
    recorded = manifest["distillation"]
    assert (recorded["contexts"], recorded["min_count"], recorded["max_words"]) == (20, 2, 750_000)
    assert (recorded["min_sentences"], recorded["min_characters"]) == (1, 0)
    assert manifest["corpus"]["paragraphs"] == len(TEXT)
    assert manifest["settings"]["min_sentences"] == 1
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "--min-count 2" in card
    assert "--contexts 20" in card
    assert "--min-sentences 1" in card


def test_python_accepts_all_and_none(model: str, corpus: Path) -> None:
    for contexts in ("all", None):
        vectors = distill(corpus, teacher=model, method="aggregate", contexts=contexts, device="cpu")  # type: ignore[arg-type]
        assert vectors.provenance["read"]["contexts"] == "all"
    with pytest.raises(StillvecError) as caught:
        distill(corpus, teacher=model, method="aggregate", contexts="some", device="cpu")  # type: ignore[arg-type]
    assert "contexts" in str(caught.value)


def test_a_plan_shows_what_the_preset_set(model: str, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estimate = plan(corpus, teacher=model, method=PAPERS["gupta-jaggi-2021"], min_count=7, device="cpu")
    assert estimate.preset == {
        "contexts": None,
        "max_words": 750_000,
        "min_sentences": 3,
        "min_characters": 140,
        "lowercase": True,
    }
    call = ["distill", str(corpus), "--teacher", model, "--device", "cpu", "--quiet", "--dry-run", "--method"]
    assert main([*call, PAPERS["wang-2020"]]) == 0
    assert "contexts=all, min_count=5" in capsys.readouterr().out
    assert main([*call, "aggregate"]) == 0
    assert "preset" not in capsys.readouterr().out


def test_methods_that_do_not_agree_are_reported(model: str, corpus: Path) -> None:
    methods = f"{PAPERS['wang-2020']},aggregate"
    with pytest.warns(StillvecWarning, match="contexts=all"):
        results = distill_all(corpus, teacher=model, method=methods, device="cpu", min_count=5)
    assert {vectors.provenance["read"]["contexts"] for vectors in results.values()} == {20}
    with warnings.catch_warnings():
        warnings.simplefilter("error", StillvecWarning)
        distill_all(corpus, teacher=model, method=methods, device="cpu", min_count=5, contexts="all")


def test_a_recipe_takes_over_what_it_does_not_set(model: str, corpus: Path, tmp_path: Path) -> None:
    text = f"[distill]\ncorpus = {json.dumps(str(corpus))}\nteacher = {json.dumps(model)}\ndevice = 'cpu'\n"
    text += f"method = {json.dumps(PAPERS['gupta-jaggi-2021'])}\nmin_count = 5\n"
    text += f"out = {json.dumps(str(tmp_path / 'out'))}\n"
    (tmp_path / "recipe.toml").write_text(text, "utf-8")
    run(tmp_path / "recipe.toml")
    manifest = read_manifest(tmp_path / "out")
    assert (manifest["distillation"]["min_count"], manifest["distillation"]["contexts"]) == (5, None)
    assert manifest["corpus"]["paragraphs"] == 10


def test_a_finished_run_is_found_again(model: str, corpus: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"teacher": model, "method": PAPERS["gupta-jaggi-2021"], "device": "cpu"}
    distill(corpus, **given, out=tmp_path / "out")
    before = (tmp_path / "out" / "manifest.json").stat().st_mtime_ns
    with pytest.warns(StillvecWarning, match="already finished"):
        distill(corpus, **given, out=tmp_path / "out", contexts=None)
    assert (tmp_path / "out" / "manifest.json").stat().st_mtime_ns == before
    with pytest.raises(StillvecError, match="exists"):
        distill(corpus, **given, out=tmp_path / "out", contexts=20)


@pytest.mark.parametrize("engine", ["local", "torchrun", "ray"])
def test_every_kind_of_run_has_the_same_settings(
    engine: str, model: str, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray") if engine == "ray" else None
    monkeypatch.setattr("stillvec.distributed.ray_reader.connect", lambda address: object())
    given = {"teacher": model, "method": PAPERS["gupta-jaggi-2021"], "min_count": 5, "device": "cpu"}
    call = bind(corpus, **given, engine="ray" if engine == "ray" else "local")
    group: Any = SimpleNamespace(rank=0, world_size=2) if engine == "torchrun" else None
    made = call._run(group)
    assert (made.settings.contexts, made.settings.min_count, made.settings.max_words) == (None, 5, 750_000)
    assert made.corpus is not None
    assert [*made.corpus.paragraphs()] == TEXT[:10]


def bind(*corpus: Any, **arguments: Any) -> _Call:
    return _Call.build(Arguments.bind(inspect.signature(distill), *corpus, **arguments))


def test_a_checkpoint_has_the_settings_that_hold(model: str, corpus: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"teacher": model, "method": PAPERS["wang-2020"], "device": "cpu", "out": tmp_path / "out"}
    made = bind(corpus, **given)._run(None)
    assert made.checkpoint is not None
    made.checkpoint.write(made._decisive, dict)
    bind(corpus, **given, resume=True)._run(None)
    bind(corpus, **given, resume=True, contexts="all", min_count=5)._run(None)
    with pytest.raises(StillvecError, match="contexts"):
        bind(corpus, **given, resume=True, contexts=20)._run(None)


def test_a_result_that_is_added_to_keeps_its_paragraphs(model: str, corpus: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"teacher": model, "device": "cpu"}
    distill(corpus, **given, method="aggregate", min_sentences=3, min_characters=140, out=tmp_path / "first")
    corpus.write_text("\n".join(TEXT[1:]), "utf-8")
    added = distill(corpus, **given, add_to=tmp_path / "first").provenance
    assert (added["distillation"]["min_sentences"], added["distillation"]["min_characters"]) == (3, 140)
    assert added["corpus"]["paragraphs"] == 9


def test_text_without_a_paragraph_that_is_long_enough_is_one_line(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.txt").write_text("\n".join([FEW_SENTENCES, FEW_CHARACTERS]), "utf-8")
    call = ["distill", str(tmp_path / "short.txt"), "--teacher", model, "--out", str(tmp_path / "out"), "--quiet"]
    stderr = refused(capsys, main([*call, "--method", PAPERS["gupta-jaggi-2021"]]))
    assert "--min-sentences" in stderr
    assert not (tmp_path / "out").exists()
    assert "min_sentences" in refused(capsys, main([*call, "--min-sentences", "0"]))


# ---- short paragraphs


def test_short_paragraphs_are_dropped() -> None:
    corpus = Corpus.from_texts(TEXT)
    assert len([*corpus.paragraphs()]) == len(TEXT)
    assert {*corpus.drop_short_paragraphs(3, 140).paragraphs()} == {COMMON, RARE}
    assert {*corpus.drop_short_paragraphs(min_sentences=3).paragraphs()} == {COMMON, RARE, FEW_CHARACTERS}
    assert {*corpus.drop_short_paragraphs(min_characters=140).paragraphs()} == {COMMON, RARE, FEW_SENTENCES}
    assert [text for _, text in corpus.drop_short_paragraphs(3, 140).paragraphs_by_file()] == TEXT[:10]
    assert len([*corpus.paragraphs()]) == len(TEXT), "the corpus itself is not changed"


def test_limits_are_included() -> None:
    text = "One. Two. Three."
    assert [*Corpus.from_texts([text]).drop_short_paragraphs(3, len(text)).paragraphs()] == [text]
    for least in ((4, 0), (1, len(text) + 1)):
        with pytest.raises(StillvecError) as caught:
            [*Corpus.from_texts([text]).drop_short_paragraphs(*least).paragraphs()]
        assert caught.value.code == "empty"


def test_parts_of_a_corpus_drop_them_too(corpus: Path) -> None:
    selected = Corpus(corpus).drop_short_paragraphs(3, 140)
    assert [text for part in selected.split() for text in part.paragraphs()] == TEXT[:10]
    assert [*selected.absolute().paragraphs()] == TEXT[:10]


def test_baselines_can_drop_them_too(corpus: Path) -> None:
    pytest.importorskip("gensim")
    given: dict[str, Any] = {"method": "skipgram:epochs=1", "dim": 4, "min_count": 3}
    assert "river" in train(corpus, **given).words
    vectors = train(corpus, **given, min_sentences=3, min_characters=140)
    assert "river" not in vectors.words
    assert vectors.provenance["training"]["min_characters"] == 140
    parsed = corpus.with_name("parsed.conllu")
    parsed.write_text("1\tdogs\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n\n", "utf-8")
    with pytest.raises(StillvecError, match="CoNLL-U"):
        train(parsed, method="deps", min_sentences=3)
