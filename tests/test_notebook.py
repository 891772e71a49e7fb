"""What a notebook shows: a table of facts that is safe to show, and pictures of words that say where they stand."""

from __future__ import annotations

import pickle
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import stillvec
from stillvec import Vocabulary, WordVectors
from stillvec.errors import UsageError, VocabularyError
from stillvec.formats import load, write_folder


class _Text(HTMLParser):
    """The text of a page, and the tags that it is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    words = ["he", "she", "king", "queen", "good", "bad", "$x$", "<b>"]
    return WordVectors(Vocabulary(words, range(8, 0, -1)), np.random.default_rng(5).normal(size=(8, 6)))


def test_a_notebook_shows_what_vectors_are_and_how_they_were_made(vectors: WordVectors, tmp_path: Path) -> None:
    made = {
        "method": "auto",
        "teacher": {"name": "minilm", "dim": 384},
        "corpus": {"sources": ["a.txt", "b.txt"], "words": 1234567},
    }
    write_folder(stillvec.refine(vectors, "subword:buckets=50"), tmp_path / "v", made)
    shown = _Text(load(tmp_path / "v")._repr_html_())
    facts = dict(zip(shown.cells[1::2], shown.cells[2::2], strict=True))
    assert facts == {
        "words": "8", "dimensions": "6", "numbers": "float64", "method": "auto", "teacher": "minilm",
        "corpus": "a.txt, b.txt: 1,234,567 words", "n-grams": "of 2 to 5 characters in 50 rows",
        "most frequent": "he, she, king, queen, good, bad, $x$, <b>",
    }  # fmt: skip
    assert "n-grams" in repr(load(tmp_path / "v"))
    assert pickle.loads(pickle.dumps(load(tmp_path / "v"))).provenance["method"] == "auto"


def test_words_are_text_and_never_markup_and_no_colour_is_set() -> None:
    odd = WordVectors(
        ["<script>alert(1)</script>", 'a"&b', "\ud800x", *(f"w{'x' * 90}{n}" for n in range(20))], [[1]] * 23
    )
    page = odd._repr_html_()
    assert _Text(page).tags == {"div", "strong", "table", "tbody", "tr", "th", "td"}
    assert page.encode()
    assert len(page) < 6000
    assert not re.search(r"#[0-9a-f]{3}|rgb|white|black", page)


def test_nothing_is_shown_as_little() -> None:
    assert "words" in WordVectors([], np.zeros((0, 3)))._repr_html_()


@pytest.fixture(scope="module")
def matplotlib() -> None:
    pytest.importorskip("matplotlib")


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_a_map_has_a_dot_and_a_label_a_word_and_is_a_picture(vectors: WordVectors, method: str) -> None:
    drawn = stillvec.plot(vectors, [*vectors.words], method=method, title="Words")  # type: ignore[arg-type]
    (axes,) = drawn.axes
    assert sorted(text.get_text() for text in axes.texts) == sorted(vectors.words)
    assert axes.collections[0].get_offsets().shape == (8, 2)
    assert drawn._repr_png_().startswith(b"\x89PNG")


@pytest.mark.usefixtures("matplotlib")
def test_the_map_is_the_principal_plane_of_scikit_learn(vectors: WordVectors) -> None:
    from sklearn.decomposition import PCA

    units = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    wanted = PCA(2).fit_transform(units)
    at = np.asarray(stillvec.plot(vectors, vectors.words).axes[0].collections[0].get_offsets())
    np.testing.assert_allclose(np.abs(at), np.abs(wanted), atol=1e-6)


@pytest.mark.usefixtures("matplotlib")
def test_labels_do_not_overlap_if_there_is_space() -> None:
    random = np.random.default_rng(1)
    words = [f"word{n}" for n in range(30)]
    drawn = stillvec.plot(WordVectors(words, random.normal(size=(30, 5))), words)
    drawn.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawn.axes[0].texts]
    assert not any(a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[:at])


@pytest.mark.usefixtures("matplotlib")
def test_between_opposites_a_word_stands_at_its_cosine_with_their_difference(vectors: WordVectors) -> None:
    def cosine(word: str, a: str, b: str) -> float:
        unit = {each: vectors[each] / np.linalg.norm(vectors[each]) for each in (word, a, b)}
        way = unit[b] - unit[a]
        return float(unit[word] @ way / np.linalg.norm(way))

    words = ["king", "queen", "$x$"]
    plane = stillvec.plot(vectors, words, axes=[("he", "she"), ("bad", "good")]).axes[0]
    wanted = [[cosine(word, "he", "she"), cosine(word, "bad", "good")] for word in words]
    np.testing.assert_allclose(plane.collections[0].get_offsets(), wanted, atol=1e-6)
    assert (plane.get_xlabel().split()[0], plane.get_ylabel().split()[-1]) == ("he", "good")
    line = stillvec.plot(vectors, words, axes=[("he", "she")]).axes[0]
    ordered = sorted(words, key=lambda word: cosine(word, "he", "she"))
    assert [label.get_text() for label in line.get_yticklabels()] == ordered


@pytest.mark.usefixtures("matplotlib")
def test_groups_are_coloured_and_named(vectors: WordVectors) -> None:
    axes = stillvec.plot(vectors, {"people": ["he", "she"], "things": ["good", "bad"]}).axes[0]
    colours = axes.collections[0].get_facecolors()
    assert (colours[0] == colours[1]).all()
    assert (colours[0] != colours[2]).any()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["people", "things"]


@pytest.mark.usefixtures("matplotlib")
def test_a_plot_that_is_invalid_is_refused(vectors: WordVectors) -> None:
    wrong = [
        (["he"], {}, "at least two words"),
        ("he", {}, "words: expected a list"),
        (["he", "she"], {"method": "umap"}, "'umap'"),
        (["he", "she"], {"axes": [("a", "b")] * 3}, "one or two pairs"),
        (["he", "she"], {"axes": [("he", "he")]}, "the same vector"),
    ]
    for words, settings, sentence in wrong:
        with pytest.raises(UsageError, match=sentence):
            stillvec.plot(vectors, words, **settings)  # type: ignore[arg-type]
    with pytest.raises(VocabularyError, match="'kingg'"):
        stillvec.plot(vectors, ["he", "kingg"])
