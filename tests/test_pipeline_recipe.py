"""Recipes: whole experiments in TOML files, checked before the first step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_corpus import refused, sentences

from stillvec.cli import main
from stillvec.formats import load, read_manifest
from stillvec.pipeline.settings import Distillation, Training, parse_methods
from stillvec.verbs.recipe import read_recipe


@pytest.fixture
def folder(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a corpus and a dataset."""
    (tmp_path / "text.txt").write_text("\n".join(sentences(48)), "utf-8")
    (tmp_path / "data" / "similarity").mkdir(parents=True)
    pairs = ["farmer\tbaker\t7", "river\tharbour\t6", "bread\tbooks\t2", "king\tshoes\t1", "old\tfresh\t4"]
    (tmp_path / "data" / "similarity" / "pairs.tsv").write_text("\n".join(pairs) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINY_TEACHER", model)
    return tmp_path


COMPLETE = """
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
def run_text(folder: Path) -> Callable[[str], int]:
    def run_recipe(text: str) -> int:
        (folder / "recipe.toml").write_text(text, "utf-8")
        return main(["run", "recipe.toml", "--quiet"])

    return run_recipe


def test_a_recipe_distils_and_evaluates(
    run_text: Callable[[str], int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_text(COMPLETE) == 0
    output = capsys.readouterr()
    assert "similarity" in output.out
    assert output.err == ""
    for method in ("aggregate", "additive"):
        manifest = read_manifest(folder / "vectors" / method)
        assert manifest["settings"]["layer"] == "1"
        assert manifest["seed"] == 5
        assert manifest["distillation"]["contexts"] is None
    scores = json.loads((folder / "scores.json").read_text("utf-8"))
    assert [report["vectors"] for report in scores] == ["aggregate", "additive"]
    assert {score["dataset"] for report in scores for score in report["scores"]} == {"pairs"}


def test_a_recipe_gives_the_same_vectors_as_the_command_line(
    run_text: Callable[[str], int], folder: Path, model: str
) -> None:
    assert run_text(COMPLETE) == 0
    words = ["distill", "text.txt", "--teacher", model, "--min-count", "1", "--contexts", "all", "--layer", "1"]
    assert main([*words, "--seed", "5", "--method", "aggregate", "--out", "alone", "--quiet"]) == 0
    assert np.array_equal(load(folder / "alone").matrix, load(folder / "vectors" / "aggregate").matrix)


def test_a_recipe_without_evaluate_only_distils(run_text: Callable[[str], int], folder: Path) -> None:
    assert run_text(COMPLETE.partition("[evaluate]")[0]) == 0
    assert (folder / "vectors" / "additive" / "manifest.json").exists()
    assert not (folder / "scores.json").exists()


def test_words_to_include_are_a_file_or_a_list(run_text: Callable[[str], int], folder: Path) -> None:
    (folder / "keep.txt").write_text("zebra\nnew york\n", "utf-8")
    start = '[distill]\nteacher = "$TINY_TEACHER"\nmethod = "decontextualized"\n'
    assert run_text(f'{start}keep = "keep.txt"\nout = "a"\n') == 0
    assert run_text(f'{start}keep = ["zebra", "new york"]\nout = "b"\n') == 0
    assert load(folder / "a").words == load(folder / "b").words == ("zebra", "new york")
    assert np.array_equal(load(folder / "a").matrix, load(folder / "b").matrix)


def test_a_recipe_adds_to_an_earlier_result(run_text: Callable[[str], int], folder: Path) -> None:
    plain = COMPLETE.partition("[evaluate]")[0].replace("aggregate,additive", "aggregate")
    assert run_text(plain) == 0
    assert run_text(plain.replace('out = "vectors"', 'out = "more"\nadd_to = "vectors"')) == 0
    first, more = load(folder / "vectors"), load(folder / "more")
    assert more.vocabulary.counts.sum() == 2 * first.vocabulary.counts.sum()
    assert np.allclose(first.matrix, more.matrix, atol=1e-5)


REFUSED = {
    "unknown section": (COMPLETE + "\n[destill]\n", "did you mean 'distill'"),
    "unknown key": (COMPLETE.replace("seed", "sead"), "did you mean 'seed'"),
    "unknown key of evaluate": (COMPLETE.replace("tasks", "task"), "did you mean 'tasks'"),
    "unknown method": (COMPLETE.replace("additive", "aditive"), "did you mean 'additive'"),
    "unknown task": (COMPLETE.replace('"similarity"', '"similarty"'), "similarty"),
    "no data": (COMPLETE.replace('data = "data"', 'data = "nowhere"'), "nowhere"),
    "no out": (COMPLETE.replace('out = "vectors"', ""), "out"),
    "no distill": ("[evaluate]\n", "[distill]"),
    "evaluate is not a table": ("evaluate = 3\n" + COMPLETE.partition("[evaluate]")[0], "[evaluate]"),
    "not a number": (COMPLETE.replace("seed = 5", 'seed = "five"'), "'five'"),
    "a list for a text": (COMPLETE.replace('layer = "1"', 'layer = ["1"]'), "layer"),
    "not TOML": ("[distill\n", "not TOML"),
    "a variable that is not set": (COMPLETE.replace("$TINY_TEACHER", "$NO_SUCH_TEACHER"), "$NO_SUCH_TEACHER"),
    "missing corpus": (COMPLETE.replace("text.txt", "nowhere.txt"), "nowhere.txt"),
    "missing word list": (COMPLETE.replace("seed = 5", 'keep = "nowhere.txt"'), "nowhere.txt"),
    "out is a number": (COMPLETE.replace('out = "vectors"', "out = 5"), "'out'"),
    "a number of an array of paths": (COMPLETE.replace('["text.txt"]', '["text.txt", 5]'), "'corpus'"),
    "a path with a null character": (COMPLETE.replace('"vectors"', r'"a\u0000b"'), "'out'"),
    "remote code": (COMPLETE.replace("seed = 5", 'remote_code = "yes"'), "--remote-code"),
    "unsafe weights": (COMPLETE.replace("seed = 5", "unsafe-weights = true"), "--unsafe-weights"),
    "out is a list": (COMPLETE.replace('out = "vectors"', 'out = ["vectors"]'), "'out'"),
    "corpus is true": (COMPLETE.replace('["text.txt"]', "true"), "'corpus'"),
    "keep is true": (COMPLETE.replace("seed = 5", "keep = true"), "'keep'"),
}


@pytest.mark.parametrize("case", [*REFUSED])
def test_a_recipe_with_an_error_is_refused_before_the_first_step(
    case: str, run_text: Callable[[str], int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, named = REFUSED[case]
    error = refused(capsys, run_text(text))
    assert named in error
    assert not (folder / "vectors").exists()


def test_a_recipe_may_ask_for_code_of_the_teacher_if_the_reader_allows_it(folder: Path) -> None:
    recipe = COMPLETE.replace("seed = 5", "remote_code = true\nunsafe_weights = true")
    (folder / "recipe.toml").write_text(recipe, "utf-8")
    assert main(["run", "recipe.toml", "--dry-run", "--remote-code"]) == 2
    assert main(["run", "recipe.toml", "--dry-run", "--remote-code", "--unsafe-weights"]) == 0


def test_a_path_below_the_home_folder_is_expanded(
    run_text: Callable[[str], int], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder / "home"))
    assert run_text(COMPLETE.partition("[evaluate]")[0].replace('"vectors"', '"~/vectors"')) == 0
    assert (folder / "home" / "vectors").is_dir()
    assert not (folder / "~").exists()


def test_the_error_of_a_missing_recipe_names_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nowhere.toml"]) == 2
    assert "nowhere.toml" in capsys.readouterr().err


def test_a_recipe_is_read_into_settings(folder: Path) -> None:
    (folder / "recipe.toml").write_text(COMPLETE, "utf-8")
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


def test_a_recipe_trains_and_distils_and_evaluates_all(run_text: Callable[[str], int], folder: Path) -> None:
    assert run_text(TRAINED + COMPLETE) == 0
    scores = json.loads((folder / "scores.json").read_text("utf-8"))
    assert [report["vectors"] for report in scores] == ["aggregate", "additive", "glove", "sent2vec"]
    assert load(folder / "trained" / "glove").matrix.shape[1] == 8
    assert load(folder / "trained" / "glove").words == load(folder / "vectors" / "aggregate").words


def test_a_recipe_that_only_trains_gives_the_same_vectors_as_the_command_line(
    run_text: Callable[[str], int], folder: Path
) -> None:
    assert run_text(TRAINED) == 0
    words = ["train", "text.txt", "--method", "glove:epochs=2", "--dim", "8", "--min-count", "1", "--threads", "1"]
    assert main([*words, "--seed", "5", "--out", "alone", "--quiet"]) == 0
    assert np.array_equal(load(folder / "alone").matrix, load(folder / "trained" / "glove").matrix)


TRAINING_REFUSED = {
    "unknown key": (TRAINED.replace("dim", "dims"), "did you mean 'dim'"),
    "a setting of distill": (TRAINED + 'teacher = "minilm"\n', "'teacher'"),
    "a path of distill": (TRAINED + 'add_to = "x"\n', "'add_to'"),
    "no corpus": (TRAINED.replace('corpus = ["text.txt"]', ""), "corpus"),
    "unknown method": (TRAINED.replace("glove", "globe"), "did you mean 'glove'"),
    "the same folder twice": (TRAINED.replace('"trained"', '"vectors"') + COMPLETE, "both write"),
    "parses of a text": (TRAINED.replace("glove:epochs=2", "deps"), "CoNLL-U"),
}


@pytest.mark.parametrize("case", [*TRAINING_REFUSED])
def test_a_table_train_with_an_error_is_refused_before_the_first_step(
    case: str, run_text: Callable[[str], int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, named = TRAINING_REFUSED[case]
    error = refused(capsys, run_text(text))
    assert named in error
    assert not (folder / "vectors").exists()
    assert not (folder / "trained").exists()


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


def test_the_steps_of_a_recipe_run_after_those_whose_output_they_read(
    run_text: Callable[[str], int], folder: Path
) -> None:
    assert run_text(CHAIN) == 0
    assert [step.verb for step in read_recipe("recipe.toml")] == ["distill", "refine", "combine", "convert", "evaluate"]
    assert [step["step"] for step in load("small").provenance["refined"]] == ["center", "pca"]
    assert [space["method"] for space in load("both").provenance["combined"]] == ["aggregate", "additive"]
    assert load("both.vec").words == load("both").words
    assert [report["vectors"] for report in json.loads((folder / "scores.json").read_text("utf-8"))] == [
        "small",
        "both",
    ]


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
    old: str, new: str, named: str, run_text: Callable[[str], int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_text(CHAIN.replace(old, new)) == 2
    assert named in capsys.readouterr().err
    assert not (folder / "vectors").exists()


GRID = """
[[train]]
for = {every = [1, 2], seed = [5]}
corpus = ["text-{every}.txt"]
method = ["glove:epochs=2", "sent2vec:epochs=2"]
dim = 8
min_count = "{every}"
threads = 1
seed = "{seed}"
out = "trained-{every}"

[[combine]]
in = ["trained-?/glove"]
method = "concat:words=intersection"
out = "both"

[[evaluate]]
for = {every = [1, 2]}
in = ["trained-{every}/*"]
data = "data"
json = "scores-{every}.json"
"""


@pytest.fixture
def grid(folder: Path) -> str:
    lines = (folder / "text.txt").read_text("utf-8").splitlines()
    for every in (1, 2):
        (folder / f"text-{every}.txt").write_text("\n".join(lines[::every] * every), "utf-8")
    return GRID


def test_a_table_with_for_is_run_for_each_combination(run_text: Callable[[str], int], folder: Path, grid: str) -> None:
    assert run_text(grid) == 0
    steps = read_recipe("recipe.toml")
    assert [step.target for step in steps] == ["trained-1", "trained-2", "both", None, None]
    assert [step.min_count for step in steps if isinstance(step, Training)] == [1, 2]
    for every in (1, 2):
        scores = json.loads((folder / f"scores-{every}.json").read_text("utf-8"))
        assert [report["vectors"] for report in scores] == ["glove", "sent2vec"]
    assert load("both").dim == 16


def test_a_pattern_keeps_the_order_in_which_the_vectors_were_written(
    run_text: Callable[[str], int], folder: Path
) -> None:
    text = TRAINED.replace('"glove:epochs=2,sent2vec:epochs=2"', '["sent2vec:epochs=2", "glove:epochs=2"]')
    assert run_text(f'{text}\n[evaluate]\nin = ["trained/*"]\ndata = "data"\njson = "scores.json"\n') == 0
    scores = json.loads((folder / "scores.json").read_text("utf-8"))
    assert [report["vectors"] for report in scores] == ["sent2vec", "glove"]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("seed = [5]", "seed = 5", "'for'"),
        ("seed = [5]", "seed = []", "'for'"),
        ("seed = [5]", 'seed = ["five"]', "'five'"),
        ('seed = "{seed}"', "seed = 5", "'seed'"),
        ('out = "trained-{every}"', 'out = "trained"', "both write trained"),
        ('json = "scores-{every}.json"', 'json = "scores.json"', "both write scores.json"),
        ('in = ["trained-?/glove"]', 'in = ["learned-?/glove"]', "learned-?/glove"),
    ],
)
def test_a_wrong_grid_or_pattern_is_refused_before_the_first_step(
    old: str,
    new: str,
    named: str,
    run_text: Callable[[str], int],
    folder: Path,
    grid: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_text(grid.replace(old, new)) == 2
    assert named in capsys.readouterr().err
    assert not (folder / "trained-1").exists()


def test_dry_run_lists_the_steps_and_writes_nothing(
    folder: Path, grid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "recipe.toml").write_text(grid, "utf-8")
    before = sorted(folder.rglob("*"))
    assert main(["run", "recipe.toml", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1. train text-1.txt -> trained-1",
        "2. train text-2.txt -> trained-2",
        "3. combine trained-?/glove -> both",
        "4. evaluate trained-1/*",
        "5. evaluate trained-2/*",
    ]
    assert sorted(folder.rglob("*")) == before
