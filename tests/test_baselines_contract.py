"""Every baseline, the day it arrives: one finite row a word, the same bytes twice, progress, settings, resuming."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_corpus import counted, sentences, words_of

from stillvec.baselines import BASELINES, EncodedCorpus, Resources, encode_corpus
from stillvec.corpus import Corpus
from stillvec.errors import TrainingError, UsageError
from stillvec.pipeline.settings import Training
from stillvec.registry import settings_from
from stillvec.result import Result
from stillvec.training.checkpoint import open_checkpoint
from stillvec.training.schedule import TrainingProgress

GENSIM = {"skipgram", "cbow", "fasttext"}
NUMBA = {"glove", "sent2vec"}
SMALL: dict[str, dict[str, Any]] = {"fasttext": {"buckets": 300}, "deps": {"min_context_count": 1}}
OWN = [name for name in BASELINES if name not in GENSIM]


def as_conllu(made: list[str]) -> str:
    """Each word depends on the one before it."""
    rows = ("\n".join(_row(i, word) for i, (word, _, _) in enumerate(words_of(each), 1)) for each in made)
    return "\n\n".join(f"# text = {each}\n{row}" for each, row in zip(made, rows, strict=True)) + "\n"


def _row(number: int, word: str) -> str:
    return f"{number}\t{word}\t_\t_\t_\t_\t{number - 1}\t{'root' if number == 1 else 'dep'}\t_\t_"


@pytest.fixture
def text(tmp_path: Path, request: pytest.FixtureRequest) -> EncodedCorpus:
    """Parses, or two sentences per line for the method that reads texts of one meaning."""
    made = sentences(96)
    pairs = "".join(f"{one}\t{other}\n" for one, other in zip(made[::2], made[1::2], strict=True))
    in_pairs = (
        request.node.callspec.params.get("name") == "word_operators" if hasattr(request.node, "callspec") else False
    )
    path = tmp_path / ("text.txt" if in_pairs else "text.conllu")
    path.write_text(pairs if in_pairs else as_conllu(made), "utf-8")
    folder = tmp_path / "text"
    folder.mkdir()
    steps = encode_corpus(Corpus(path), counted(made), folder)
    return run(steps)[0]


def run(steps: Generator[Any, None, Any], stop: int | None = None) -> tuple[Any, list[Any]]:
    events: list[Any] = []
    while stop is None or len(events) < stop:
        try:
            events.append(next(steps))
        except StopIteration as end:
            return end.value, events
    steps.close()
    return None, events


def learner(name: str, **given: Any) -> Any:
    if name in GENSIM:
        pytest.importorskip("gensim")
    if name in NUMBA:
        pytest.importorskip("numba")
    return BASELINES[name](**{"dim": 8, "epochs": 3, **SMALL.get(name, {}), **given})


@pytest.mark.parametrize("name", [*BASELINES])
def test_every_word_gets_a_finite_row_of_the_requested_dimensions(name: str, text: EncodedCorpus) -> None:
    trained: Result = run(learner(name).steps(text, Resources(1)))[0]
    assert trained.vectors.words == text.vocabulary.words
    assert trained.vectors.matrix.shape == (len(text.vocabulary), 8)
    assert trained.vectors.matrix.dtype == np.float32
    assert np.isfinite(trained.vectors.matrix).all()
    assert np.abs(trained.vectors.matrix).sum(1).min() > 0
    assert len(np.unique(trained.vectors.matrix, axis=0)) == len(text.vocabulary)
    json.dumps(trained.notes)


@pytest.mark.parametrize("name", [*BASELINES])
def test_one_thread_and_one_seed_give_the_same_bytes_and_another_seed_others(name: str, text: EncodedCorpus) -> None:
    first, again, other = (
        run(learner(name, seed=seed).steps(text, Resources(1)))[0].vectors.matrix.tobytes() for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", [*BASELINES])
def test_several_threads_learn_every_word_too(name: str, text: EncodedCorpus) -> None:
    trained = run(learner(name).steps(text, Resources(3)))[0]
    assert np.isfinite(trained.vectors.matrix).all()
    assert trained.vectors.words == text.vocabulary.words


def test_glove_gives_the_same_bytes_for_the_same_number_of_threads(text: EncodedCorpus) -> None:
    one, again = (run(learner("glove").steps(text, Resources(3)))[0].vectors.matrix for _ in range(2))
    assert one.tobytes() == again.tobytes()


@pytest.mark.parametrize("name", [*BASELINES])
def test_progress_goes_forward_to_all_words_of_all_epochs(name: str, text: EncodedCorpus) -> None:
    events: list[TrainingProgress] = run(learner(name).steps(text, Resources(1)))[1]
    done = [step.done for step in events]
    assert done == sorted(done)
    assert done[-1] == 3 * text.n_words
    assert {step.total for step in events} == {3 * text.n_words}


@pytest.mark.parametrize("name", [*BASELINES])
def test_settings_come_back_from_json_and_presets_have_known_names(name: str) -> None:
    kind = BASELINES[name]
    made = learner(name)
    assert settings_from(kind, json.loads(json.dumps(dataclasses.asdict(made)))) == made
    for preset in kind.PRESETS:  # type: ignore[attr-defined]
        assert re.fullmatch(r"[a-z-]+-\d{4}", preset)
        assert settings_from(kind, {"settings": preset}) != kind()


@pytest.mark.parametrize("name", [*BASELINES])
@pytest.mark.parametrize(("setting", "value"), [("dim", 0), ("epochs", 0), ("rate", -1.0), ("rate", float("nan"))])
def test_a_setting_that_is_invalid_is_refused(name: str, setting: str, value: float) -> None:
    with pytest.raises(UsageError, match=setting):
        learner(name, **{setting: value})


@pytest.mark.parametrize("name", [*BASELINES])
def test_a_training_that_is_left_leaves_nothing_behind_and_stops(name: str, text: EncodedCorpus) -> None:
    run(learner(name).steps(text, Resources(1)), stop=1)
    assert {path.name for path in text.folder.iterdir()} <= {"rows", "ends", "lines.txt"}


@pytest.mark.parametrize("name", OWN)
def test_what_was_stopped_continues_to_the_same_bytes(
    name: str, text: EncodedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stillvec.training.checkpoint._EVERY", 0.0)
    whole, events = run(learner(name).steps(text, Resources(1)))
    first = next(number for number, step in enumerate(events) if step.done > text.n_words) + 1
    run(learner(name).steps(text, Resources(1, open_checkpoint(tmp_path, {}, resume=False))), stop=first)
    assert [*tmp_path.glob("training-*.safetensors")]
    rest, more = run(learner(name).steps(text, Resources(1, open_checkpoint(tmp_path, {}, resume=True))))
    assert next(step.done for step in more if step.done) > text.n_words
    assert rest.vectors.matrix.tobytes() == whole.vectors.matrix.tobytes()


@pytest.mark.parametrize("name", OWN)
def test_an_excessive_rate_is_reported(name: str, text: EncodedCorpus) -> None:
    with pytest.raises(TrainingError, match=r"lower it \(rate="):
        run(learner(name, rate=1e38, epochs=6).steps(text, Resources(1)))


def test_general_settings_go_to_every_method_and_its_own_come_last() -> None:
    made = Training(method="skipgram,glove:dim=7,glove:settings=pennington-2014", dim=9, seed=4).baselines()
    assert [*made] == ["skipgram", "glove", "glove-3"]
    assert [each.dim for each in made.values()] == [9, 7, 9]  # type: ignore[attr-defined]
    assert {each.seed for each in made.values()} == {4}  # type: ignore[attr-defined]
    assert made["glove-3"].x_max == 100  # type: ignore[attr-defined]
