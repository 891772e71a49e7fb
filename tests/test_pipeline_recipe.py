"""Recipes: a run in a TOML file, with what is not right in it named before the work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_corpus import sentences

from stillvec.cli import main
from stillvec.formats import load, read_manifest
from stillvec.pipeline.settings import Distillation, parse_methods
from stillvec.verbs.recipe import read_recipe


@pytest.fixture
def room(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with a corpus and a set of pairs."""
    (tmp_path / "text.txt").write_text("\n".join(sentences(48)), "utf-8")
    (tmp_path / "data" / "similarity").mkdir(parents=True)
    pairs = ["farmer\tbaker\t7", "river\tharbour\t6", "bread\tbooks\t2", "king\tshoes\t1", "old\tfresh\t4"]
    (tmp_path / "data" / "similarity" / "pairs.tsv").write_text("\n".join(pairs) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINY_TEACHER", model)
    return tmp_path


WHOLE = """
[distill]
corpus = ["text.txt"]
teacher = "$TINY_TEACHER"
method = "aggregate,additive"
min-count = 1
contexts = "all"
layer = "1"
seed = 5
out = "vectors"

[evaluate]
data = "data"
tasks = ["similarity"]
json = "scores.json"
"""


@pytest.fixture
def cook(room: Path) -> Callable[[str], int]:
    def call(text: str) -> int:
        (room / "recipe.toml").write_text(text, "utf-8")
        return main(["run", "recipe.toml", "--quiet"])

    return call


def test_a_recipe_distils_and_judges(
    cook: Callable[[str], int], room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cook(WHOLE) == 0
    told = capsys.readouterr()
    assert "similarity" in told.out
    assert told.err == ""
    for method in ("aggregate", "additive"):
        manifest = read_manifest(room / "vectors" / method)
        assert manifest["settings"]["layer"] == "1"
        assert manifest["seed"] == 5
        assert manifest["distillation"]["contexts"] is None
    scores = json.loads((room / "scores.json").read_text("utf-8"))
    assert [each["vectors"] for each in scores] == ["aggregate", "additive"]
    assert {score["dataset"] for each in scores for score in each["scores"]} == {"pairs"}


def test_a_recipe_gives_what_the_command_line_gives(cook: Callable[[str], int], room: Path, model: str) -> None:
    assert cook(WHOLE) == 0
    words = ["distill", "text.txt", "--teacher", model, "--min-count", "1", "--contexts", "all", "--layer", "1"]
    assert main([*words, "--seed", "5", "--method", "aggregate", "--out", "alone", "--quiet"]) == 0
    assert np.array_equal(load(room / "alone").matrix, load(room / "vectors" / "aggregate").matrix)


def test_a_recipe_without_evaluate_only_distils(cook: Callable[[str], int], room: Path) -> None:
    assert cook(WHOLE.partition("[evaluate]")[0]) == 0
    assert (room / "vectors" / "additive" / "manifest.json").exists()
    assert not (room / "scores.json").exists()


def test_words_to_keep_are_a_file_or_a_list(cook: Callable[[str], int], room: Path) -> None:
    (room / "keep.txt").write_text("zebra\nnew york\n", "utf-8")
    start = '[distill]\nteacher = "$TINY_TEACHER"\nmethod = "decontextualized"\n'
    assert cook(f'{start}keep = "keep.txt"\nout = "a"\n') == 0
    assert cook(f'{start}keep = ["zebra", "new york"]\nout = "b"\n') == 0
    assert load(room / "a").words == load(room / "b").words == ("zebra", "new york")
    assert np.array_equal(load(room / "a").matrix, load(room / "b").matrix)


def test_a_recipe_adds_to_an_earlier_result(cook: Callable[[str], int], room: Path) -> None:
    plain = WHOLE.partition("[evaluate]")[0].replace("aggregate,additive", "aggregate")
    assert cook(plain) == 0
    assert cook(plain.replace('out = "vectors"', 'out = "more"\nadd_to = "vectors"')) == 0
    first, more = load(room / "vectors"), load(room / "more")
    assert more.vocabulary.counts.sum() == 2 * first.vocabulary.counts.sum()
    assert np.allclose(first.matrix, more.matrix, atol=1e-5)


REFUSED = {
    "unknown section": (WHOLE + "\n[destill]\n", "did you mean 'distill'"),
    "unknown key": (WHOLE.replace("seed", "sead"), "did you mean 'seed'"),
    "unknown key of evaluate": (WHOLE.replace("tasks", "task"), "did you mean 'tasks'"),
    "unknown method": (WHOLE.replace("additive", "aditive"), "did you mean 'additive'"),
    "unknown task": (WHOLE.replace('"similarity"', '"similarty"'), "similarty"),
    "no data": (WHOLE.replace('data = "data"', 'data = "nowhere"'), "nowhere"),
    "no out": (WHOLE.replace('out = "vectors"', ""), "out"),
    "no distill": ("[evaluate]\n", "[distill]"),
    "evaluate is no section": ("evaluate = 3\n" + WHOLE.partition("[evaluate]")[0], "[evaluate]"),
    "not a number": (WHOLE.replace("seed = 5", 'seed = "five"'), "'five'"),
    "a list for a text": (WHOLE.replace('layer = "1"', 'layer = ["1"]'), "layer"),
    "not TOML": ("[distill\n", "not TOML"),
    "a variable that is not set": (WHOLE.replace("$TINY_TEACHER", "$NO_SUCH_TEACHER"), "$NO_SUCH_TEACHER"),
    "no corpus there": (WHOLE.replace("text.txt", "nowhere.txt"), "nowhere.txt"),
    "no list there": (WHOLE.replace("seed = 5", 'keep = "nowhere.txt"'), "nowhere.txt"),
    "out is a list": (WHOLE.replace('out = "vectors"', 'out = ["vectors"]'), "'out'"),
    "corpus is true": (WHOLE.replace('["text.txt"]', "true"), "'corpus'"),
    "keep is true": (WHOLE.replace("seed = 5", "keep = true"), "'keep'"),
}


@pytest.mark.parametrize("case", [*REFUSED])
def test_a_recipe_that_is_not_right_is_refused_before_the_work(
    case: str, cook: Callable[[str], int], room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, named = REFUSED[case]
    assert cook(text) in (1, 2)
    told = capsys.readouterr().err
    assert told.startswith("stillvec: "), told
    assert told.count("\n") == 1, told
    assert named in told
    assert not (room / "vectors").exists()


def test_a_recipe_that_is_not_there_is_named(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nowhere.toml"]) == 2
    assert "nowhere.toml" in capsys.readouterr().err


def test_a_recipe_is_read_into_settings(room: Path) -> None:
    (room / "recipe.toml").write_text(WHOLE, "utf-8")
    step, evaluation = read_recipe("recipe.toml")
    assert isinstance(step, Distillation)
    assert (step.verb, step.target, evaluation.verb, evaluation.sources) == ("distill", "vectors", "evaluate", [])
    assert (step.method, step.min_count, step.contexts, step.layer) == ("aggregate,additive", 1, None, "1")


TRAINED = """
[train]
corpus = ["text.txt"]
method = "glove:epochs=2,sent2vec:epochs=2"
dim = 8
min-count = 1
threads = 1
seed = 5
out = "trained"
"""


def test_a_recipe_trains_beside_what_it_distils_and_judges_all(cook: Callable[[str], int], room: Path) -> None:
    assert cook(TRAINED + WHOLE) == 0
    scores = json.loads((room / "scores.json").read_text("utf-8"))
    assert [each["vectors"] for each in scores] == ["aggregate", "additive", "glove", "sent2vec"]
    assert load(room / "trained" / "glove").matrix.shape[1] == 8
    assert load(room / "trained" / "glove").words == load(room / "vectors" / "aggregate").words


def test_a_recipe_that_only_trains_gives_what_the_command_line_gives(cook: Callable[[str], int], room: Path) -> None:
    assert cook(TRAINED) == 0
    words = ["train", "text.txt", "--method", "glove:epochs=2", "--dim", "8", "--min-count", "1", "--threads", "1"]
    assert main([*words, "--seed", "5", "--out", "alone", "--quiet"]) == 0
    assert np.array_equal(load(room / "alone").matrix, load(room / "trained" / "glove").matrix)


TRAINING_REFUSED = {
    "unknown key": (TRAINED.replace("dim", "dims"), "did you mean 'dim'"),
    "a setting of distill": (TRAINED + 'teacher = "minilm"\n', "'teacher'"),
    "a place of distill": (TRAINED + 'add_to = "x"\n', "'add_to'"),
    "no corpus": (TRAINED.replace('corpus = ["text.txt"]', ""), "corpus"),
    "unknown method": (TRAINED.replace("glove", "globe"), "did you mean 'glove'"),
    "the same folder twice": (TRAINED.replace('"trained"', '"vectors"') + WHOLE, "both write"),
    "parses of a text": (TRAINED.replace("glove:epochs=2", "deps"), "CoNLL-U"),
}


@pytest.mark.parametrize("case", [*TRAINING_REFUSED])
def test_a_section_train_that_is_not_right_is_refused_before_the_work(
    case: str, cook: Callable[[str], int], room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, named = TRAINING_REFUSED[case]
    assert cook(text) in (1, 2)
    told = capsys.readouterr().err
    assert told.startswith("stillvec: "), told
    assert told.count("\n") == 1, told
    assert named in told
    assert not (room / "vectors").exists()
    assert not (room / "trained").exists()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("auto", [("auto", "auto", {})]),
        (" auto , additive ", [("auto", "auto", {}), ("additive", "additive", {})]),
        (
            "aggregate:layer=2,pieces=first,auto",
            [("aggregate", "aggregate", {"layer": "2", "pieces": "first"}), ("auto", "auto", {})],
        ),
        (
            "additive:ridge=1,additive:ridge=2",
            [("additive", "additive", {"ridge": "1"}), ("additive-2", "additive", {"ridge": "2"})],
        ),
    ],
)
def test_methods_are_written_with_their_settings(text: str, wanted: list[tuple[str, str, dict[str, str]]]) -> None:
    assert [(label, spec.name, spec.settings) for label, spec in parse_methods(text)] == wanted


CHAIN = """
[[convert]]
in = "both"
out = "both.vec"

[[combine]]
in = ["vectors/aggregate", "small"]
method = "concat"
out = "both"

[[refine]]
in = "vectors/additive"
steps = ["center", "pca:dim=4"]
out = "small"

[[distill]]
corpus = ["text.txt"]
teacher = "$TINY_TEACHER"
method = "aggregate,additive"
min-count = 1
contexts = "all"
out = "vectors"

[[evaluate]]
in = ["small", "both"]
data = "data"
tasks = ["similarity"]
json = "scores.json"
"""


def test_a_recipe_does_what_the_verbs_do_in_the_order_of_their_files(cook: Callable[[str], int], room: Path) -> None:
    assert cook(CHAIN) == 0
    assert [step.verb for step in read_recipe("recipe.toml")] == ["distill", "refine", "combine", "convert", "evaluate"]
    assert [step["step"] for step in load("small").provenance["refined"]] == ["center", "pca"]
    assert [space["method"] for space in load("both").provenance["combined"]] == ["aggregate", "additive"]
    assert load("both.vec").words == load("both").words
    assert [one["vectors"] for one in json.loads((room / "scores.json").read_text("utf-8"))] == ["small", "both"]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('steps = ["center", "pca:dim=4"]', 'steps = ["centre"]', "'center'"),
        ('method = "concat"', 'method = "conkat"', "'concat'"),
        ('out = "both.vec"', 'out = "both.strange"', "both.strange"),
        ('in = "vectors/additive"', 'in = "both"', "each read"),
    ],
)
def test_a_wrong_table_is_refused_before_the_first_step(
    old: str, new: str, named: str, cook: Callable[[str], int], room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cook(CHAIN.replace(old, new)) == 2
    assert named in capsys.readouterr().err
    assert not (room / "vectors").exists()
