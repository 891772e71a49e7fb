"""What a user would give to a function is accepted: paths or vectors, lists of files or texts, one name or several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import raises
from tiny_corpus import sentences

import stillvec
from stillvec.corpus import open_corpus
from stillvec.errors import CorpusError, UsageError
from stillvec.input_checks import check_arguments

TEXTS = ["The river is cold.", "Bread is\nwarm."]


@pytest.fixture
def vectors() -> stillvec.WordVectors:
    return stillvec.WordVectors(["ice", "snow", "fire", "sun"], np.random.default_rng(0).normal(size=(4, 3)))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    paths = [tmp_path / name for name in ("a.txt", "my file.txt")]
    for path, text in zip(paths, TEXTS, strict=True):
        path.write_text(text, "utf-8")
    return paths


@pytest.mark.parametrize("kind", [list, tuple, iter, np.array])
def test_a_list_of_texts_is_a_corpus_of_texts(kind: Any, files: list[Path]) -> None:
    corpus = open_corpus([kind(TEXTS)])
    assert corpus is not None
    assert not corpus.sources
    assert [*corpus.sentences()] == [*stillvec.Corpus.from_texts(TEXTS).sentences()]


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_a_list_of_files_is_a_corpus_of_files(kind: Any, files: list[Path]) -> None:
    for names in (files, [path.name for path in files], ["*.txt"], ["my*e.txt", files[0]]):
        corpus = open_corpus([kind(names)])
        assert corpus is not None
        assert len(corpus.sources) == 2
    assert len(open_corpus([files[0], [files[1]]]).sources) == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "names", [["a.txt", "missing file.txt"], ["word"], ["The river is cold.", "word"], ["a.txt", TEXTS[0]]]
)
def test_a_misspelled_file_is_never_taken_for_a_text(names: list[str], files: list[Path]) -> None:
    with raises(CorpusError, code="not-found"):
        open_corpus([names])


def test_one_string_is_a_path_and_the_error_says_how_to_give_texts(files: list[Path]) -> None:
    for text in (TEXTS[0], "A long text. " * 1000):
        with raises(CorpusError, code="not-found", match="from_texts") as caught:
            open_corpus([text])
        assert len(str(caught.value)) < 300


def test_texts_and_other_sources_are_not_mixed(files: list[Path]) -> None:
    for sources in ([TEXTS, files[0]], [TEXTS, TEXTS], [stillvec.Corpus(*files), files[0]], [3], [{"a": "b"}]):
        with raises(UsageError):
            open_corpus(sources)  # type: ignore[arg-type]
    assert open_corpus([]) is None
    assert open_corpus([[]]) is None


def test_training_on_texts_is_training_on_their_corpus() -> None:
    pytest.importorskip("gensim")
    options: dict[str, Any] = {"method": "skipgram:epochs=1", "dim": 4, "min_count": 1, "threads": 1}
    texts = sentences(12)
    a, b = stillvec.train(texts, **options), stillvec.train(stillvec.Corpus.from_texts(texts), **options)
    assert a.words == b.words
    np.testing.assert_array_equal(a.matrix, b.matrix)


def test_refine_takes_lists_and_paths(vectors: stillvec.WordVectors, tmp_path: Path) -> None:
    stillvec.save(vectors, tmp_path / "v")
    expected = stillvec.refine(vectors, "center", "normalize").matrix
    for given in (vectors, tmp_path / "v", str(tmp_path / "v")):
        np.testing.assert_allclose(stillvec.refine(given, ["center", "normalize"]).matrix, expected, rtol=1e-6)
    with raises(UsageError, match="at least one step"):
        stillvec.refine(vectors)
    with raises(UsageError, match="at least one step"):
        stillvec.refine(vectors, [])


def test_sets_are_given_by_path_by_value_in_lists_and_by_name(vectors: stillvec.WordVectors, tmp_path: Path) -> None:
    stillvec.save(vectors, tmp_path / "v")
    (tmp_path / "similarity").mkdir()
    (tmp_path / "similarity" / "a.tsv").write_text("ice\tsnow\t3\nfire\tsun\t2\nice\tsun\t1\n", "utf-8")
    names = {
        "vectors": vectors,
        "v": tmp_path / "v",
        "vectors-1, vectors-2": [vectors, tmp_path / "v"],
        "x, y": {"x": vectors, "y": tmp_path / "v"},
    }
    for expected, sets in names.items():
        report = stillvec.evaluate(sets, tmp_path, tasks="similarity", resamples=2)  # type: ignore[arg-type]
        assert ", ".join(report.names) == expected
    combined = stillvec.combine([vectors, tmp_path / "v"], "concat")
    assert combined.dim == 6
    assert stillvec.combine((str(tmp_path / "v"), vectors), "average").dim == 3
    analysis = stillvec.analyze(tmp_path / "v", data=tmp_path, tasks="similarity")
    assert analysis.to_json() == stillvec.analyze(vectors, data=tmp_path, tasks=["similarity"]).to_json()


def test_merge_needs_folders(vectors: stillvec.WordVectors) -> None:
    with raises(UsageError, match="folders"):
        stillvec.merge([vectors, vectors])  # type: ignore[list-item]


def test_arguments_are_checked_by_their_annotations() -> None:
    def function(
        a: int, b: str | None = None, *c: float, d: bool = False, e: list[tuple[str, int]] | None = None
    ) -> None:
        check_arguments(function, locals())

    function(1, "x", 2, 3.5, d=True, e=[("a", 1)])
    function(np.int64(3), e=[])  # type: ignore[arg-type]
    wrong: list[Any] = [("a",), (1.0,), (True,), (1, 2), (1, "x", "y")]
    for arguments in wrong:
        with raises(UsageError):
            function(*arguments)
    for keywords in ({"d": 3}, {"e": ["ab"]}, {"e": [("a", 1, 2)]}, {"e": {"a": 1}}):
        with raises(UsageError, match=next(iter(keywords))):
            function(1, **keywords)  # type: ignore[arg-type]
