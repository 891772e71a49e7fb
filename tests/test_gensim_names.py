"""gensim's names on `WordVectors` give what gensim's `KeyedVectors` gives on the same matrix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import raises

import stillvec
from stillvec import Vocabulary, WordVectors
from stillvec.errors import UnknownWordError, UsageError, VocabularyError

gensim = pytest.importorskip("gensim.models")
RNG = np.random.default_rng(7)
MATRIX = RNG.normal(size=(300, 16)).astype(np.float32) * RNG.uniform(0.2, 5, size=(300, 1)).astype(np.float32)
QUERY = RNG.normal(size=16).astype(np.float32) * 3


@pytest.fixture(scope="module", params=[np.float32, np.float16, np.float64], ids=["fp32", "fp16", "fp64"])
def vectors(request: pytest.FixtureRequest) -> WordVectors:
    matrix = MATRIX.astype(np.float16).astype(request.param)
    return WordVectors(Vocabulary([f"w{i}" for i in range(300)], range(300, 0, -1)), matrix)


@pytest.fixture(scope="module")
def keyed(vectors: WordVectors) -> Any:
    theirs = gensim.KeyedVectors(vectors.dim)
    theirs.add_vectors([*vectors.words], np.array(vectors.matrix, np.float32))
    return theirs


Call = Callable[[Any], Any]
CALLS: dict[str, Call] = {
    "one word": lambda v: v.most_similar("w5"),
    "one word in a list": lambda v: v.most_similar(["w5"], topn=25),
    "a row": lambda v: v.most_similar(5),
    "a vector": lambda v: v.most_similar(QUERY),
    "a vector in a list": lambda v: v.most_similar([QUERY]),
    "an analogy": lambda v: v.most_similar(positive=["w1", "w2"], negative=["w3"]),
    "one negative word": lambda v: v.most_similar("w1", "w9"),
    "negative words only": lambda v: v.most_similar(negative=["w8", "w9"]),
    "words and vectors": lambda v: v.most_similar(["w1", QUERY], ["w4", 0.1 * QUERY]),
    "weights": lambda v: v.most_similar([("w1", 0.2), "w2", (QUERY, 0.7)], [("w3", -0.4), "w6"]),
    "a positive weight of a negative word": lambda v: v.most_similar(["w1"], [("w3", 2)]),
    "a word twice": lambda v: v.most_similar(["w1", "w1", "w2"]),
    "everything": lambda v: v.most_similar("w3", topn=1000),
    "the first words": lambda v: v.most_similar("w250", topn=10, restrict_vocab=40),
    "more than the first words": lambda v: v.most_similar(["w3", "w250"], topn=100, restrict_vocab=40),
    "similar_by_word": lambda v: v.similar_by_word("w7", topn=4),
    "similar_by_word, first words": lambda v: v.similar_by_word("w7", 4, 30),
    "similar_by_vector": lambda v: v.similar_by_vector(QUERY, topn=4),
    "similar_by_vector, first words": lambda v: v.similar_by_vector(QUERY, 4, 30),
}


@pytest.mark.parametrize("name", CALLS)
def test_neighbours_have_the_order_and_scores_of_gensim(vectors: WordVectors, keyed: Any, name: str) -> None:
    ours, theirs = CALLS[name](vectors), CALLS[name](keyed)
    assert ours
    assert [word for word, _ in ours] == [word for word, _ in theirs]
    assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=2e-6)
    assert {type(score) for _, score in ours} == {float}


@pytest.mark.parametrize("seed", range(20))
def test_doesnt_match_gives_the_word_of_gensim(vectors: WordVectors, keyed: Any, seed: int) -> None:
    words = [f"w{row}" for row in np.random.default_rng(seed).choice(300, 4, replace=False)]
    assert vectors.doesnt_match(words) == keyed.doesnt_match(words)
    assert vectors.doesnt_match(word for word in words) == keyed.doesnt_match(words)


def test_numbers_are_those_of_gensim(vectors: WordVectors, keyed: Any) -> None:
    for word in ("w0", "w5", "w299"):
        for norm in (False, True):
            np.testing.assert_allclose(
                vectors.get_vector(word, norm=norm), keyed.get_vector(word, norm=norm), rtol=1e-6
            )
        np.testing.assert_allclose(vectors.distances(word), keyed.distances(word), atol=2e-6)
        others = ["w3", "w5", "w8"]
        np.testing.assert_allclose(vectors.distances(word, others), keyed.distances(word, others), atol=2e-6)
        assert vectors.distance(word, "w9") == pytest.approx(keyed.distance(word, "w9"), abs=2e-6)
        assert vectors.similarity(word, "w9") == pytest.approx(keyed.similarity(word, "w9"), abs=2e-6)
        for other in ("w1", "w77", "w200"):
            assert vectors.rank(word, other) == keyed.rank(word, other)
            assert vectors.closer_than(word, other) == keyed.closer_than(word, other)
    np.testing.assert_allclose(vectors.distances(QUERY), keyed.distances(QUERY), atol=2e-6)
    np.testing.assert_allclose(vectors.distances(QUERY, ["w1"]), keyed.distances(QUERY, ["w1"]), atol=2e-6)
    a, b = ["w1", "w2", "w3"], ["w4", "w5"]
    assert vectors.n_similarity(a, b) == pytest.approx(float(keyed.n_similarity(a, b)), abs=2e-6)


def test_tables_are_those_of_gensim(vectors: WordVectors, keyed: Any) -> None:
    assert [*vectors.index_to_key] == keyed.index_to_key
    assert dict(vectors.key_to_index) == keyed.key_to_index
    assert vectors.vector_size == keyed.vector_size == vectors.dim
    assert vectors.vectors is vectors.matrix
    np.testing.assert_array_equal(vectors.vectors, keyed.vectors)


@pytest.mark.parametrize("key", ["w4", 4, np.int64(4), ["w1", "w3"], [1, 3], np.array([1, 3]), ("w1", 3)])
def test_indexing_is_that_of_gensim(vectors: WordVectors, keyed: Any, key: Any) -> None:
    np.testing.assert_array_equal(vectors[key], keyed[key])
    assert vectors[key].dtype == np.float32


def test_the_first_in_rank_is_the_nearest(vectors: WordVectors) -> None:
    for place, (word, _) in enumerate(vectors.nearest("w12", k=5), 1):
        assert vectors.rank("w12", word) == place


def test_king_minus_man_plus_woman_is_not_king() -> None:
    vectors = WordVectors(["king", "queen", "man", "woman"], [[3, 3, 0.2], [3, 0, 3], [0, 1, 0], [0, 0, 1]])
    assert vectors.most_similar(["king", "woman"], ["man"], topn=1)[0][0] == "queen"
    assert "king" not in dict(vectors.most_similar(["King", "woman"], ["man"], topn=9))


def test_get_has_a_default(vectors: WordVectors) -> None:
    np.testing.assert_array_equal(vectors.get("w1"), vectors["w1"])
    assert vectors.get("unheard-of") is None
    assert vectors.get("unheard-of", 0) == 0


def test_an_unknown_word_is_a_key_error_too(vectors: WordVectors) -> None:
    for call in (lambda: vectors["w999"], lambda: vectors.get_vector("w999"), lambda: vectors.most_similar("w999")):
        with pytest.raises(KeyError) as caught:
            call()
        assert isinstance(caught.value, VocabularyError)
        assert str(caught.value).startswith("Unknown word 'w999'")


def test_a_list_of_words_gives_a_list_of_neighbours(vectors: WordVectors) -> None:
    words = ["w1", "w50"]
    expected = [vectors.nearest(word, 5) for word in words]
    for query in (words, tuple(words), np.array(words), np.array(words, object)):
        batches = vectors.nearest(query, 5)  # type: ignore[call-overload]
        assert [[word for word, _ in batch] for batch in batches] == [[word for word, _ in one] for one in expected]
    assert vectors.nearest([], 5) == []
    assert vectors.nearest(QUERY.tolist(), 3) == vectors.nearest(QUERY, 3)  # type: ignore[arg-type, comparison-overlap]


def test_similarity_of_lists_is_that_of_each_pair(vectors: WordVectors) -> None:
    a, b = ["w1", "w2", "w3"], ["w4", "w5", "w6"]
    assert vectors.similarity(a, b) == pytest.approx([vectors.similarity(*pair) for pair in zip(a, b, strict=True)])
    assert vectors.similarity("w1", b) == pytest.approx([vectors.similarity("w1", word) for word in b])
    assert vectors.similarity(b, "w1") == pytest.approx(vectors.similarity("w1", b))
    assert vectors.similarity([], []).shape == vectors.similarity("w1", []).shape == (0,)
    with raises(UsageError, match="n_similarity"):
        vectors.similarity(a, b[:2])


def test_exclude_can_be_one_word(vectors: WordVectors) -> None:
    first, second = (word for word, _ in vectors.nearest("w3", k=2))
    assert vectors.nearest("w3", k=1, exclude=first)[0][0] == second


def test_words_with_n_grams_take_part() -> None:
    from stillvec import refine

    words = ["snow", "snowy", "fire", "fires", "ice", "icy"]
    vectors = refine(WordVectors(words, RNG.normal(size=(6, 4)).astype(np.float32)), "subword:buckets=40")
    assert len(vectors.most_similar("snowing", topn=6)) == 6
    assert vectors.rank("snowing", "snow") >= 1
    assert vectors.rank("snow", "snowing") >= 1
    assert vectors.distance("snow", "snowing") == pytest.approx(1 - vectors.similarity("snow", "snowing"), abs=1e-6)


def test_vectors_save_themselves(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "folder")
    vectors.save(tmp_path / "v.vec")
    vectors.save(tmp_path / "v", format="glove")
    assert (tmp_path / "folder" / "manifest.json").is_file()
    for name in ("folder", "v.vec", "v"):
        again = stillvec.load(tmp_path / name)
        assert again.words == vectors.words
        np.testing.assert_allclose(again.matrix, vectors.matrix, rtol=1e-3)


def test_encode_can_normalize_and_show_a_bar(vectors: WordVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["w1 w2", "nothing", "w3", "w4 w5 w6", "w7"]
    plain = vectors.encode(texts)
    lengths = np.linalg.norm(vectors.encode(texts, normalize=True), axis=1)
    np.testing.assert_allclose(lengths, [1, 0, 1, 1, 1], atol=1e-6)
    assert vectors.encode("w1 w2", normalize=True).shape == (vectors.dim,)
    monkeypatch.setattr("stillvec.vectors._TEXTS", 2)
    np.testing.assert_array_equal(vectors.encode(texts, show_progress_bar=True), plain)
    np.testing.assert_array_equal(vectors.encode(iter(texts)), plain)


WRONG: dict[str, Callable[[WordVectors], object]] = {
    "no query": lambda v: v.most_similar(),
    "an empty query": lambda v: v.most_similar([], []),
    "no number of neighbours": lambda v: v.most_similar("w1", topn=0),
    "no restriction": lambda v: v.most_similar("w1", restrict_vocab=0),
    "a weight that is none": lambda v: v.most_similar([("w1", "much")]),  # type: ignore[list-item]
    "a weight that is NaN": lambda v: v.most_similar([("w1", float("nan"))]),
    "a vector of another length": lambda v: v.most_similar(np.ones(3)),
    "a list of numbers as a word": lambda v: v.most_similar([[1.0, 2.0]]),  # type: ignore[list-item]
    "no words": lambda v: v.doesnt_match([]),
    "a string for words": lambda v: v.doesnt_match("w1"),
    "an empty list": lambda v: v.n_similarity([], ["w1"]),
    "a slice": lambda v: v[:3],  # type: ignore[misc]
    "a truth value": lambda v: v[True],
    "NaN": lambda v: v.nearest(np.full(16, np.nan)),
    "words in the place of numbers": lambda v: v.similar_by_vector(["w1"]),  # type: ignore[list-item]
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_a_usage_error(vectors: WordVectors, case: str) -> None:
    with pytest.raises(UsageError):
        WRONG[case](vectors)


@pytest.mark.parametrize("row", [-1, 300, np.int64(1 << 40)])
def test_a_row_outside_the_matrix_is_refused(vectors: WordVectors, row: Any) -> None:
    with raises(UnknownWordError, code="unknown-name"):
        vectors[row]
