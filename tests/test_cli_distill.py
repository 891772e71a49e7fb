"""stillvec distill from end to end, on a tiny teacher: what comes in, what comes out, what is refused."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_corpus import refused, sentences

from stillvec.cli import main
from stillvec.errors import DeprecatedName
from stillvec.formats import load, read_manifest
from stillvec.learners import LEARNERS
from stillvec.pipeline.distillation_run import Run
from stillvec.pipeline.settings import Distillation
from stillvec.teachers import load_teacher

TEXTS = sentences(48)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS), "utf-8")
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def distil(model: str, out: Path) -> Callable[..., int]:
    """`stillvec distill` with the tiny teacher, quietly; a flag given again wins."""

    def call(*arguments: object, to: Path = out) -> int:
        defaults = ["--teacher", model, "--method", "aggregate", "--min-count", "1", "--out", str(to), "--quiet"]
        return main(["distill", *defaults, *map(str, arguments)])

    return call


def left_behind(folder: Path) -> list[str]:
    """Temporary files and folders of ours."""
    return [path.name for path in folder.iterdir() if path.name.endswith((".part", ".old"))]


# ---- what comes in


def test_a_text_becomes_a_folder_of_vectors(distil: Callable[..., int], corpus: Path, out: Path) -> None:
    assert distil(corpus) == 0
    vectors = load(out)
    assert vectors.vocabulary.counts[vectors.vocabulary.index["the"]] > 48
    assert "farmer" in vectors
    assert vectors.dim == 16
    assert np.isfinite(vectors.matrix).all()
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md", "manifest.json", "statistics.safetensors", "vectors.safetensors", "vocabulary.tsv",
    ]  # fmt: skip


@pytest.fixture
def wanted(distil: Callable[..., int], corpus: Path, tmp_path: Path) -> np.ndarray:
    assert distil(corpus, to=tmp_path / "plain") == 0
    return np.array(load(tmp_path / "plain").matrix)


def test_folder_glob_gzip_pipe_and_json_lines_are_the_same_corpus(
    distil: Callable[..., int], wanted: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(TEXTS)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(TEXTS[:20]), "utf-8")
    (folder / "b.txt").write_text("\n".join(TEXTS[20:]), "utf-8")
    (tmp_path / "zipped.txt.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "lines.jsonl").write_text("\n".join(json.dumps({"body": each}) for each in TEXTS), "utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    ways: dict[str, list[object]] = {
        "folder": [folder],
        "glob": [folder / "*.txt"],
        "files": [folder / "a.txt", folder / "b.txt"],
        "gzip": [tmp_path / "zipped.txt.gz"],
        "pipe": ["-"],
        "json": [tmp_path / "lines.jsonl", "--field", "body"],
    }
    for name, way in ways.items():
        assert distil(*way, to=tmp_path / f"out-{name}") == 0, name
        got = load(tmp_path / f"out-{name}").matrix
        assert got.shape == wanted.shape, name
        assert np.allclose(got, wanted, atol=1e-4), name


def test_a_run_twice_gives_the_same_bytes(distil: Callable[..., int], corpus: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert distil(corpus, "--method", "auto", "--contexts", "3", "--seed", "7", to=tmp_path / name) == 0
    for file in ("vectors.safetensors", "vocabulary.tsv", "statistics.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


# ---- what is asked for


def test_several_methods_get_a_folder_each(distil: Callable[..., int], corpus: Path, out: Path) -> None:
    methods = "auto,aggregate:contexts=max,aggregate:layer=1,additive,token_table"
    assert distil(corpus, "--method", methods) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "additive",
        "aggregate",
        "aggregate-3",
        "auto",
        "token_table",
    ]
    assert read_manifest(out / "aggregate")["settings"]["contexts"] == "max"
    assert read_manifest(out / "aggregate-3")["settings"]["layer"] == "1"
    assert len({load(path).words for path in out.iterdir()}) == 1
    assert distil(corpus, "--method", methods) == 0, "what is ours is replaced"


@pytest.mark.parametrize(("layer", "layers"), [("1", [1]), ("last", [2]), ("0-1", [0, 1])])
def test_a_layer_or_a_range_is_taken(
    layer: str, layers: list[int], distil: Callable[..., int], corpus: Path, out: Path
) -> None:
    assert distil(corpus, "--layer", layer) == 0
    assert read_manifest(out)["notes"]["layers"] == layers


def test_all_layers_get_a_folder_each_and_can_be_made_again(
    distil: Callable[..., int], corpus: Path, out: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        assert distil(corpus, "--layer", "all", "--force") == 0
        assert sorted(path.name for path in out.iterdir()) == [f"aggregate-layer-{n}" for n in range(3)]
    for number in range(3):
        assert distil(corpus, "--layer", number, "--force", to=tmp_path / "one") == 0
        assert np.array_equal(load(tmp_path / "one").matrix, load(out / f"aggregate-layer-{number}").matrix)


def test_all_layers_are_refused_where_other_things_are(
    distil: Callable[..., int], corpus: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "aggregate-layer-2").mkdir(parents=True)
    (out / "aggregate-layer-2" / "thesis.txt").write_text("mine", "utf-8")
    assert "contains other files" in refused(capsys, distil(corpus, "--layer", "all"))
    assert [path.name for path in out.iterdir()] == ["aggregate-layer-2"]


@pytest.mark.parametrize("method", ["aggregate", "auto", "additive"])
def test_fewer_dimensions_are_given(method: str, distil: Callable[..., int], corpus: Path, out: Path) -> None:
    assert distil(corpus, "--method", method, "--dim", "5") == 0
    assert load(out).dim == 5


def test_a_method_with_a_dimension_of_its_own_gets_no_pca_on_top(
    distil: Callable[..., int], corpus: Path, out: Path
) -> None:
    from stillvec.pipeline.previous_result import PreviousResult

    assert distil(corpus, "--method", "auto", "--dim", "5") == 0
    previous = PreviousResult(out)
    wanted = previous.learner().finish(previous.statistics).vectors.matrix
    np.testing.assert_allclose(load(out).matrix, wanted, atol=1e-6)


def test_most_frequent_words_only(distil: Callable[..., int], corpus: Path, out: Path) -> None:
    assert distil(corpus, "--max-words", "7") == 0
    vectors = load(out)
    assert len(vectors) == 7
    assert vectors.words[0] == "the"


def test_terms_that_are_kept_are_counted_and_read_as_a_whole(
    distil: Callable[..., int], tmp_path: Path, out: Path
) -> None:
    text, keep = tmp_path / "text.txt", tmp_path / "keep.txt"
    text.write_text(
        "The New York school is old. He reads in New  York. A new house in York. A new book.\n" * 3, "utf-8"
    )
    keep.write_text("new york\n# a comment\nzebra crossing\nZebra\n", "utf-8")
    assert distil(text, "--include-words", keep, "--min-count", "3", "--contexts", "all") == 0
    vectors = load(out)
    count = dict(zip(vectors.words, vectors.vocabulary.counts.tolist(), strict=True))
    assert count["new york"] in (3, 6)  # two blanks in a row may part it
    assert count["york"] == 9 - count["new york"]
    assert count["new"] == 12 - count["new york"]
    assert count["zebra"] == count["zebra crossing"] == 0
    for word in ("new york", "zebra", "zebra crossing"):
        assert np.linalg.norm(vectors[word]) > 0
    assert not np.allclose(vectors["new york"], vectors["york"])
    assert read_manifest(out)["read"]["words_without_context"] == 2


def test_capitals_are_kept_apart_on_request(distil: Callable[..., int], corpus: Path, out: Path) -> None:
    assert distil(corpus, "--cased") == 0
    assert {"The", "the"} <= set(load(out).words)
    assert distil(corpus, "--force") == 0
    assert "The" not in load(out).words


def test_few_contexts_are_enough_for_every_word_and_cost_less(
    distil: Callable[..., int], tmp_path: Path, out: Path
) -> None:
    text = tmp_path / "long.txt"
    text.write_text("\n".join(sentences(600)), "utf-8")
    assert distil(text, "--contexts", "all", to=tmp_path / "all") == 0
    assert distil(text, "--contexts", "4") == 0
    few, whole = read_manifest(out)["read"], read_manifest(tmp_path / "all")["read"]
    assert whole["sentences"] == 600
    assert few["sentences"] < 250
    assert few["words_without_context"] == 0
    from stillvec.formats import read_statistics

    assert read_statistics(out)["states/sum:read"].min() >= 4


@pytest.mark.parametrize(("precision", "least"), [("bf16", 0.98), ("int8", 0.9)])
def test_lower_precision_is_close(
    precision: str, least: float, distil: Callable[..., int], corpus: Path, out: Path, wanted: np.ndarray
) -> None:
    assert distil(corpus, "--precision", precision) == 0
    got = load(out).matrix
    cosines = (got * wanted).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(wanted, axis=1)
    assert got.dtype == np.float32
    assert cosines.mean() > least
    assert not np.array_equal(got, wanted)
    assert read_manifest(out)["teacher"]["precision"] == precision


@pytest.mark.parametrize("method", [*LEARNERS])
def test_without_a_corpus_a_list_of_words_is_enough(
    method: str, distil: Callable[..., int], tmp_path: Path, out: Path
) -> None:
    keep, dictionary = tmp_path / "keep.txt", tmp_path / "dictionary.tsv"
    keep.write_text("house\nsea\ndog\nold book\nhouses\n", "utf-8")
    dictionary.write_text("house\ta place for people\ndog\tan animal\nold book\tone to read\n", "utf-8")
    extra = ["--dictionary", dictionary] if method in ("dictionary", "auto") else []
    assert distil("--include-words", keep, "--method", method, *extra) == 0
    vectors = load(out)
    assert sorted(vectors.words) == ["dog", "house", "houses", "old book", "sea"]
    assert np.isfinite(vectors.matrix).all()
    assert read_manifest(out)["corpus"]["from"] == "the list given"


def test_without_a_corpus_or_a_list_the_words_are_the_teachers_own(distil: Callable[..., int], out: Path) -> None:
    assert distil("--method", "auto") == 0
    vectors = load(out)
    assert {"house", "sleeps", "books" if "books" in vectors else "book"} <= set(vectors.words)
    assert not [word for word in vectors.words if word.startswith(("##", "["))]
    assert "templates" in read_manifest(out)["notes"]["why"]


def test_the_dictionary_that_is_given_is_used(
    distil: Callable[..., int], corpus: Path, tmp_path: Path, out: Path
) -> None:
    dictionary = tmp_path / "dictionary.tsv"
    dictionary.write_text("farmer\tgrows bread\nriver\twater\n", "utf-8")
    assert distil(corpus, "--method", "dictionary,auto", "--dictionary", dictionary) == 0
    for method in ("dictionary", "auto"):
        assert read_manifest(out / method)["notes"]["defined"] == 2


def test_vectors_for_sentences_are_additive(
    distil: Callable[..., int], corpus: Path, out: Path, tmp_path: Path
) -> None:
    assert distil(corpus, "--method", "auto", "--for", "sentences") == 0
    assert distil(corpus, "--method", "additive:ridge=0.03,directions=1", to=tmp_path / "additive") == 0
    assert read_manifest(out)["settings"]["purpose"] == "sentences"
    assert "sentence" in read_manifest(out)["notes"]["why"]
    assert read_manifest(out)["notes"]["smoothing"] == 1e-3
    assert load(out).dim == load(tmp_path / "additive").dim


def test_vectors_for_queries_include_words_of_the_teacher(
    distil: Callable[..., int], corpus: Path, out: Path, tmp_path: Path
) -> None:
    assert distil(corpus, "--method", "auto", "--for", "queries") == 0
    assert distil(corpus, "--method", "additive", to=tmp_path / "additive") == 0
    vectors, additive = load(out), load(tmp_path / "additive")
    unseen = {*vectors.words} - {*additive.words}
    assert unseen
    assert all(vectors[word].any() for word in unseen)


def test_the_earlier_flag_for_the_purpose_still_works(distil: Callable[..., int], corpus: Path, out: Path) -> None:
    with pytest.warns(DeprecatedName, match="flag '--purpose' is deprecated; use '--for'"):
        assert distil(corpus, "--method", "auto", "--purpose", "sentences") == 0
    assert read_manifest(out)["settings"]["purpose"] == "sentences"


def test_statistics_are_left_out_on_request(distil: Callable[..., int], corpus: Path, out: Path) -> None:
    assert distil(corpus, "--no-statistics") == 0
    assert not (out / "statistics.safetensors").exists()


# ---- what is told


def test_the_manifest_says_how_it_was_made(distil: Callable[..., int], corpus: Path, out: Path, model: str) -> None:
    assert distil(corpus, "--layer", "1", "--seed", "3", "--contexts", "all") == 0
    manifest = read_manifest(out)
    assert manifest["method"] == "aggregate"
    assert manifest["settings"] == {"layer": "1", "pieces": "mean", "contexts": "mean"}
    assert manifest["distillation"]["seed"] == manifest["seed"] == 3
    assert manifest["distillation"]["min_count"] == 1
    assert manifest["teacher"]["digest"] == load_teacher(model).digest
    assert manifest["teacher"] | {"dim": 16, "depth": 2, "device": "cpu", "precision": "fp32"} == manifest["teacher"]
    assert manifest["corpus"]["sources"] == ["corpus.txt"]
    assert len(manifest["corpus"]["digest"]) == 32
    assert manifest["corpus"]["words"] == manifest["read"]["words"] == 9 * 48
    assert manifest["corpus"]["paragraphs"] == manifest["read"]["sentences"] == 48
    assert manifest["read"]["pieces"] > manifest["read"]["words"]
    assert manifest["read"]["contexts"] == "all"
    assert manifest["read"]["pieces_a_second"] > 0
    assert 0 < manifest["read"]["seconds"] <= manifest["seconds"]
    assert {"numpy", "torch", "transformers", "tokenizers", "safetensors"} <= manifest["libraries"].keys()
    assert manifest["words"] == len(load(out))
    assert manifest["stillvec"]
    assert manifest["python"]
    assert manifest["made"].startswith("20")


def test_another_text_has_another_digest(distil: Callable[..., int], corpus: Path, out: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("\n".join([*TEXTS[1:], TEXTS[0]]), "utf-8")
    digests = []
    for text in (corpus, corpus, other):
        assert distil(text, "--force") == 0
        digests.append(read_manifest(out)["corpus"]["digest"])
    assert digests[0] == digests[1] != digests[2]


def test_progress_is_plain_lines_on_standard_error_where_there_is_no_terminal(
    model: str, corpus: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["distill", str(corpus), "--teacher", model, "--min-count", "1", "--out", str(out)]) == 0
    output = capsys.readouterr()
    lines = output.err.splitlines()
    assert lines[0] == "loading the teacher"
    assert any(line.startswith("counting words: ") and "432 words" in line for line in lines)
    assert any(line.startswith("reading the corpus") for line in lines)
    assert any(line.startswith("reading words in templates") for line in lines)
    assert any(line.startswith("computing vectors (auto)") for line in lines)
    assert any(line.startswith("writing (auto)") for line in lines)
    assert "\x1b" not in output.err + output.out
    assert f"{out}: " in output.out
    assert "of 432 words" in output.out


def test_on_a_terminal_a_bar_is_drawn_and_taken_away(
    model: str, corpus: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    drawn = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", drawn)
    assert main(["distill", str(corpus), "--teacher", model, "--min-count", "1", "--out", str(out)]) == 0
    assert "computing vectors (auto)" in drawn.getvalue()
    assert drawn.getvalue().endswith(("\x1b[2K", "\r", "\x1b[?25h", "\x1b[1A\x1b[2K"))


def test_a_long_run_says_how_much_time_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    from stillvec.cli.progress_bar import show_events
    from stillvec.progress import Progress

    with show_events() as listener:
        listener(Progress("reading the corpus", 250, 1000, "words", 5.0, fraction=0.3, remaining=15.2))
    stderr = capsys.readouterr().err
    assert stderr == "reading the corpus: 30%, 250 of 1,000 words, 50 words/s, about 15 s left\n"


def test_quiet_says_nothing_on_standard_error(
    distil: Callable[..., int], corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distil(corpus) == 0
    assert capsys.readouterr().err == ""


# ---- what is refused, each with exit code 1 and one line


Refusal = tuple[list[str], str]
REFUSED: dict[str, Refusal] = {
    "unknown method": (["--method", "agregate"], "did you mean 'aggregate'"),
    "unknown setting": (["--method", "aggregate:layre=2"], "did you mean 'layer'"),
    "setting that is no number": (["--method", "additive:ridge=much"], "a number"),
    "setting without a method": (["--method", "layer=2"], "key=value"),
    "setting without a value": (["--method", "aggregate:layer"], "key=value"),
    "a method twice": (["--method", "aggregate,aggregate"], "twice"),
    "unknown layer": (["--layer", "9"], "0 (input) to 2 (last)"),
    "layer that is none": (["--layer", "first"], "'first'"),
    "layer for who has none": (["--method", "auto", "--layer", "1"], "'layer'"),
    "dictionary for who has none": (["--dictionary", "wordnet"], "'dictionary'"),
    "purpose for who has none": (["--for", "sentences"], "'purpose'"),
    "unknown pooling": (["--method", "aggregate:contexts=median"], "median"),
    "contexts that are no number": (["--contexts", "x"], "'x'"),
    "no contexts": (["--contexts", "0"], "contexts"),
    "more dimensions than there are": (["--dim", "17"], "16 dimensions"),
    "no dimension": (["--dim", "0"], "dim"),
    "min count too high": (["--min-count", "1000"], "--min-count"),
    "negative min count": (["--min-count", "-1"], "min_count"),
    "no cuda": (["--device", "cuda"], "cuda"),
    "unknown device": (["--device", "tpu"], "'tpu'"),
    "unknown precision": (["--precision", "fp8"], "'fp8'"),
    "unknown teacher": (["--teacher", "/nowhere/model"], "/nowhere/model"),
    "missing list": (["--include-words", "nowhere.txt"], "nowhere.txt"),
    "missing dictionary": (["--method", "auto", "--dictionary", "nowhere.tsv"], "nowhere.tsv"),
    "no earlier result": (["--add-to", "nowhere"], "nowhere"),
}


@pytest.mark.parametrize("case", [*REFUSED])
def test_a_call_that_is_invalid_is_refused_in_one_line(
    case: str, distil: Callable[..., int], corpus: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if case == "no cuda":
        import torch

        if torch.cuda.is_available():
            pytest.skip("here it is")
    arguments, named = REFUSED[case]
    assert named in refused(capsys, distil(corpus, *arguments))
    assert not out.exists()
    assert left_behind(out.parent) == []


EARLY = ["unknown layer", "unknown pooling", "more dimensions than there are", "missing dictionary", "unknown method"]


@pytest.mark.parametrize("case", EARLY)
def test_it_is_refused_before_the_corpus_is_counted(
    case: str, distil: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.txt"  # counting would fail with another sentence
    empty.write_bytes(b"")
    arguments, named = REFUSED[case]
    if case == "unknown pooling":
        arguments = ["--method", "aggregate:contexts=median"]
    assert named in refused(capsys, distil(empty, *arguments))


BAD_FILES: dict[str, tuple[str, bytes, list[str], str]] = {
    "empty": ("empty.txt", b"", [], "empty"),
    "only blanks": ("blank.txt", b" \n\n \n", [], "empty"),
    "only signs": ("signs.txt", b"... !!! ---\n", [], "no words"),
    "binary": ("picture.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), [], "PNG"),
    "random bytes": ("noise.txt", bytes((n * 7919) % 256 for n in range(4096)), [], "noise.txt"),
    "truncated gzip": ("cut.txt.gz", gzip.compress(b"The house stands by the sea. " * 99)[:60], [], "cut.txt.gz"),
    "not gzip": ("not.txt.gz", b"The house stands by the sea.", [], "not.txt.gz"),
    "unknown field": ("lines.jsonl", b'{"body": "The house."}\n', ["--field", "text"], "text"),
    "not JSON": ("lines.jsonl", b"{'body': 1}\n", ["--field", "body"], "lines.jsonl"),
    "not UTF-8, strictly": ("latin.txt", "The café is old.\n".encode("latin-1"), ["--strict"], "UTF-8"),
}


@pytest.mark.parametrize("case", [*BAD_FILES])
def test_a_corpus_that_cannot_be_read_is_refused_in_one_line(
    case: str, distil: Callable[..., int], tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, content, arguments, named = BAD_FILES[case]
    (tmp_path / name).write_bytes(content)
    assert named in refused(capsys, distil(tmp_path / name, *arguments))
    assert not out.exists()


def test_a_corpus_that_does_not_exist_is_named(distil: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere.txt" in refused(capsys, distil("nowhere.txt"))


def test_an_empty_list_of_words_is_refused(
    distil: Callable[..., int], corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "keep.txt").write_text("# nothing\n\n", "utf-8")
    assert "keep.txt" in refused(capsys, distil(corpus, "--include-words", tmp_path / "keep.txt"))


def test_bytes_that_are_not_utf_8_are_replaced_with_one_warning(
    distil: Callable[..., int], tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "latin.txt").write_bytes("The café is old.\nThe house is old.\n".encode("latin-1"))
    assert distil(tmp_path / "latin.txt") == 0
    stderr = capsys.readouterr().err
    assert stderr.startswith("Note: 1 bytes are not UTF-8")
    assert stderr.count("\n") == 1
    assert "house" in load(out)


@pytest.mark.parametrize(
    "arguments", [["--min-count", "x"], ["--for", "dogs"], ["--nonsense"], ["--paragraphs", "pages"]]
)
def test_a_call_that_cannot_be_read_ends_with_2(
    arguments: list[str], distil: Callable[..., int], corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        distil(corpus, *arguments)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


# ---- what is written, and when


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(self: Run) -> Iterator[Any]:
        raise AssertionError("it should have been refused before")
        yield

    monkeypatch.setattr(Run, "steps", work)


@pytest.mark.usefixtures("no_work")
def test_a_folder_with_other_things_is_refused_before_the_work(
    distil: Callable[..., int], corpus: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("mine", "utf-8")
    assert "contains other files" in refused(capsys, distil(corpus))
    (out / "auto").mkdir()
    (out / "auto" / "thesis.txt").write_text("mine", "utf-8")
    assert "contains other files" in refused(capsys, distil(corpus, "--method", "aggregate,auto"))
    assert (out / "auto" / "thesis.txt").read_text("utf-8") == "mine"


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("methods", ["aggregate", "aggregate,auto"])
@pytest.mark.parametrize("place", ["file", "file/inside", "file/deep/inside"])
def test_a_file_in_the_way_is_refused_before_the_work(
    methods: str, place: str, distil: Callable[..., int], corpus: Path, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    assert "file" in refused(capsys, distil(corpus, "--method", methods, to=tmp_path / place))
    assert (tmp_path / "file").read_text("utf-8") == "mine"


@pytest.mark.usefixtures("no_work")
def test_a_place_that_is_read_only_is_refused_before_the_work(
    distil: Callable[..., int], corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "read-only" in refused(capsys, distil(corpus))


@pytest.mark.parametrize("before", [True, False])
def test_after_an_error_nothing_half_written_is_left(
    before: bool, distil: Callable[..., int], corpus: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = b""
    if before:
        assert distil(corpus) == 0
        old = (out / "vectors.safetensors").read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "disk")

    for place in ("stillvec.learners.aggregate.WordMeans", "stillvec.formats.stillvec_folder.write_tensors"):
        with monkeypatch.context() as patch:
            patch.setattr(place, fail)
            assert distil(corpus, "--layer", "1", "--force") == 1
        assert out.exists() is before
        assert left_behind(out.parent) == []
        if before:
            assert (out / "vectors.safetensors").read_bytes() == old


@pytest.mark.parametrize(
    "place",
    [
        "stillvec.pipeline.corpus_counts.WordCounter.add",
        "stillvec.teachers.teacher.Teacher.states",
        "stillvec.learners.aggregate.WordMeans",
        "stillvec.formats.stillvec_folder.write_tensors",
    ],
)
def test_ctrl_c_exits_with_130_and_leaves_no_partial_output(
    place: str, distil: Callable[..., int], corpus: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, stop)
    assert distil(corpus) == 130
    assert "interrupted" in capsys.readouterr().err
    assert not out.exists()
    assert left_behind(out.parent) == []


def test_settings_of_a_run_are_checked_in_python_too() -> None:
    from stillvec.errors import UsageError

    with pytest.raises(UsageError, match="dogs"):
        Distillation(purpose="dogs")


def test_distill_in_python_gives_vectors_and_writes_them(corpus: Path, model: str, out: Path) -> None:
    from stillvec import distill, distill_all
    from stillvec.corpus import Corpus
    from stillvec.errors import UsageError
    from stillvec.progress import Progress

    seen: list[Progress] = []
    one = distill(
        corpus, teacher=model, method="aggregate", min_count=1, out=out, progress=seen.append, include_words=["zebra"]
    )
    assert np.array_equal(one.matrix, load(out).matrix)
    assert "zebra" in one
    assert [step.stage for step in seen if not step.note][:2] == ["loading the teacher", "counting words"]
    texts, methods = Corpus.from_texts(TEXTS), "aggregate,token_table"
    assert [*distill_all(texts, teacher=model, method=methods, min_count=1)] == ["aggregate", "token_table"]
    with pytest.raises(UsageError) as refused:
        distill(texts, teacher=model, method=methods)
    assert refused.value.code == "several-methods"
    assert "distill_all" in str(refused.value)


def test_threads_are_those_requested_and_afterwards_as_before(
    distil: Callable[..., int], corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[int, int | None]] = []
    whole = Run.steps
    monkeypatch.setattr(
        Run, "steps", lambda run: seen.append((torch.get_num_threads(), run.reader.threads)) or whole(run)
    )
    before = torch.get_num_threads()
    assert distil(corpus, "--threads", before + 1) == 0
    assert seen == [(before + 1, before + 1)]
    assert torch.get_num_threads() == before
    assert "threads: expected at least 1" in refused(capsys, distil(corpus, "--threads", 0))
