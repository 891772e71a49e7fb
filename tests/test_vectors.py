"""`WordVectors` against scipy, gensim and slow loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, cosine

from stillvec import Vocabulary, WordVectors, refine
from stillvec.errors import UsageError, VocabularyError


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    matrix = np.random.default_rng(3).normal(size=(200, 12)).astype(np.float32)
    return WordVectors(Vocabulary([f"w{i}" for i in range(200)], range(200, 0, -1)), matrix)


@pytest.fixture(scope="module")
def keyed(vectors: WordVectors) -> Any:
    theirs = pytest.importorskip("gensim.models").KeyedVectors(vectors.dim)
    theirs.add_vectors(list(vectors.words), np.array(vectors.matrix))
    return theirs


def slow_mean(vectors: WordVectors, words: list[str]) -> NDArray[np.float64]:
    known = [vectors[word].astype(np.float64) for word in words if word in vectors]
    return np.mean(known, axis=0) if known else np.zeros(vectors.dim)


def test_similarity_is_scipys_cosine(vectors: WordVectors) -> None:
    for a, b in [("w0", "w1"), ("w5", "w199"), ("w7", "w7")]:
        assert vectors.similarity(a, b) == pytest.approx(1 - cosine(vectors[a], vectors[b]), abs=1e-6)


def test_similarity_with_a_zero_vector_is_zero() -> None:
    assert WordVectors(["a", "b"], [[0, 0], [1, 2]]).similarity("a", "b") == 0


def test_nearest_agrees_with_all_cosines(vectors: WordVectors) -> None:
    cosines = 1 - cdist(vectors["w17"][None], vectors.matrix, "cosine")[0]
    order = [row for row in np.argsort(-cosines) if row != 17][:15]
    found = vectors.nearest("w17", k=15)
    assert [word for word, _ in found] == [f"w{row}" for row in order]
    assert [score for _, score in found] == pytest.approx(cosines[order].tolist(), abs=1e-6)


def test_nearest_agrees_with_gensim(vectors: WordVectors, keyed: Any) -> None:
    for word in ("w0", "w99", "w199"):
        theirs = keyed.most_similar(word, topn=10)
        ours = vectors.nearest(word, k=10)
        assert [w for w, _ in ours] == [w for w, _ in theirs]
        assert [s for _, s in ours] == pytest.approx([s for _, s in theirs], abs=1e-5)


def test_nearest_of_a_vector_finds_the_word_itself_first(vectors: WordVectors) -> None:
    assert vectors.nearest(3 * vectors["w42"], k=1) == [("w42", pytest.approx(1, abs=1e-6))]


def test_nearest_leaves_out_the_word_and_what_is_excluded(vectors: WordVectors) -> None:
    first, second, third = (word for word, _ in vectors.nearest("w3", k=3))
    assert [w for w, _ in vectors.nearest("w3", k=2, exclude=[first, "unheard-of"])] == [second, third]


def test_nearest_gives_all_there_are_when_more_are_asked_for(vectors: WordVectors) -> None:
    assert len(vectors.nearest("w3", k=10_000)) == 199


def test_nearest_ranks_the_zero_vector_with_cosine_zero() -> None:
    vectors = WordVectors(["a", "zero", "opposite"], [[1, 0], [0, 0], [-1, 0]])
    assert vectors.nearest("a", k=2) == [("zero", 0.0), ("opposite", -1.0)]


def test_nearest_among_no_words_is_nothing() -> None:
    assert WordVectors([], np.zeros((0, 3), np.float32)).nearest(np.ones(3), k=2) == []


def test_nearest_needs_a_positive_k(vectors: WordVectors) -> None:
    with pytest.raises(UsageError, match=r"k: .*got 0"):
        vectors.nearest("w1", k=0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nearest_reads_a_large_matrix_in_blocks(
    monkeypatch: pytest.MonkeyPatch, vectors: WordVectors, dtype: type
) -> None:
    matrix = vectors.matrix.astype(np.float16).astype(dtype)
    whole = WordVectors(vectors.vocabulary, matrix).nearest("w17", k=20)
    monkeypatch.setattr("stillvec.row_search._BLOCK", 7)
    again = WordVectors(vectors.vocabulary, matrix).nearest("w17", k=20)
    cosines = 1 - cdist(matrix[17:18].astype(float), matrix.astype(float), "cosine")[0]
    assert [w for w, _ in again] == [w for w, _ in whole]
    assert [w for w, _ in again] == [f"w{row}" for row in np.argsort(-cosines)[1:21]]


def test_a_query_vector_of_another_length_is_refused(vectors: WordVectors) -> None:
    with pytest.raises(UsageError, match="dimension 12"):
        vectors.nearest(np.ones(5))


def test_analogy_by_sums_agrees_with_gensim(vectors: WordVectors, keyed: Any) -> None:
    theirs = keyed.most_similar(positive=["w2", "w3"], negative=["w1"], topn=20)
    ours = vectors.analogy("w1", "w2", "w3", k=20)
    assert [word for word, _ in ours] == [word for word, _ in theirs]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_text_alone_has_the_bytes_that_it_has_among_others(weighted: bool, dtype: type) -> None:
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(50)]
    vectors = WordVectors(words, rng.standard_normal((50, 7)).astype(dtype))
    weights = rng.random(50, np.float32) if weighted else None
    texts = [" ".join(rng.choice([*words, "unknown"], size)) for size in (0, 1, 2, 9, 40)]
    together = vectors.encode(texts, weights=weights)
    for text, row in zip(texts, together, strict=True):
        assert vectors.encode(text, weights=weights).tobytes() == row.tobytes()


def test_analogy_by_products_agrees_with_gensim(vectors: WordVectors, keyed: Any) -> None:
    for a, b, c in [("w1", "w2", "w3"), ("w50", "w60", "w70")]:
        theirs = keyed.most_similar_cosmul(positive=[b, c], negative=[a], topn=10)
        ours = vectors.analogy(a, b, c, k=10, method="3cosmul")
        assert [word for word, _ in ours] == [word for word, _ in theirs]


def test_analogy_by_products_is_the_formula_of_levy_and_goldberg(vectors: WordVectors) -> None:
    [(word, score)] = vectors.analogy("w1", "w2", "w3", method="3cosmul")
    a, b, c = ((1 + vectors.similarity(word, w)) / 2 for w in ("w1", "w2", "w3"))
    assert score == pytest.approx(b * c / (a + 0.001), rel=1e-5)


def test_analogy_never_answers_with_its_question() -> None:
    vectors = WordVectors(["a", "b", "c", "far"], [[1, 0.1], [1, 0.2], [1, 0.3], [-1, 0]])
    assert [word for word, _ in vectors.analogy("a", "b", "c", k=4)] == ["far"]


def test_an_unknown_analogy_method_gets_the_nearest_name(vectors: WordVectors) -> None:
    with pytest.raises(UsageError, match="did you mean '3cosadd'"):
        vectors.analogy("w1", "w2", "w3", method="3cosad")


def test_encode_is_the_mean_of_the_known_words(vectors: WordVectors) -> None:
    texts = ["w1 w2 unknown w3", "", "nothing known here", "w9", "w1 w1 w2", "W5, w6!", "  "]
    words = [["w1", "w2", "w3"], [], [], ["w9"], ["w1", "w1", "w2"], ["w5", "w6"], []]
    expected = np.stack([slow_mean(vectors, some) for some in words])
    np.testing.assert_allclose(vectors.encode(texts), expected, atol=1e-6)


def test_sif_weights_replace_the_weight_that_rows_contain() -> None:
    counts, rows = np.array([60, 30, 9, 1]), np.random.default_rng(0).normal(size=(4, 3))
    vocabulary, shares = Vocabulary(["a", "b", "c", "d"], counts), np.array([0.6, 0.3, 0.09, 0.01])
    weight = {a: a / (a + shares) for a in (1e-3, 0.02, 0.1)}
    plain = WordVectors(vocabulary, rows)
    contained = WordVectors(vocabulary, rows * weight[1e-3][:, None], provenance={"notes": {"smoothing": 1e-3}})
    refined = refine(contained, "sif:a=0.02")
    for vectors in (plain, contained, refined):
        w = weight[0.1][[0, 1, 3]]
        expected = (w[:, None] * rows[[0, 1, 3]]).sum(0)
        got = vectors.encode("a b d", sif=0.1, normalize=True)
        np.testing.assert_allclose(got, expected / np.linalg.norm(expected), atol=1e-5)
    unit = refine(refined, "normalize")
    np.testing.assert_allclose(unit.sif_weights(0.1), weight[0.1], rtol=1e-5)
    with pytest.raises(UsageError, match="word counts"):
        WordVectors(["a"], [[1.0]]).encode("a", sif=0.1)
    with pytest.raises(UsageError, match="positive"):
        plain.encode("a", sif=0)
    with pytest.raises(UsageError, match="Only one"):
        plain.encode("a", sif=0.1, weights=[1, 1, 1, 1])


def test_encode_many_texts_agrees_with_a_slow_loop(vectors: WordVectors) -> None:
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 4, 9000)  # more filled texts than one block of 4,096
    words = [[f"w{i}" for i in rng.integers(0, 230, length)] for length in lengths]
    encoded = vectors.encode([" ".join(some) for some in words])
    expected = np.stack([slow_mean(vectors, some) for some in words])
    np.testing.assert_allclose(encoded, expected, atol=1e-5)


def test_encode_of_no_texts_is_an_empty_table(vectors: WordVectors) -> None:
    assert vectors.encode([]).shape == (0, 12)


def test_encode_of_one_text_is_one_vector(vectors: WordVectors) -> None:
    np.testing.assert_array_equal(vectors.encode("w1 w2"), vectors.encode(["w1 w2"])[0])


def test_vectors_cannot_be_changed(vectors: WordVectors) -> None:
    with pytest.raises(ValueError, match="read-only"):
        vectors.matrix[0, 0] = 1


def test_a_vector_taken_out_may_be_changed_without_changing_the_vectors(vectors: WordVectors) -> None:
    before = vectors.matrix[4].copy()
    taken, several = vectors["w4"], vectors[["w4", "w5"]]
    taken[:] = 0
    several[:] = 0
    np.testing.assert_array_equal(vectors.matrix[4], before)


def test_the_callers_array_stays_writable() -> None:
    matrix = np.ones((1, 2), np.float32)
    WordVectors(["a"], matrix)
    matrix[0, 0] = 2


def test_lower_cased_vectors_answer_for_capitals() -> None:
    vectors = WordVectors(["paris", "rome"], [[1, 2], [3, 4]])
    assert "Paris" in vectors
    np.testing.assert_array_equal(vectors["PARIS"], [1, 2])
    assert [word for word, _ in vectors.nearest("Paris", k=5)] == ["rome"]


def test_cased_vectors_keep_capitals_apart() -> None:
    vectors = WordVectors(["Paris", "paris"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(vectors["Paris"], [1, 2])
    assert "PARIS" not in vectors


def test_several_words_give_their_rows_in_order(vectors: WordVectors) -> None:
    np.testing.assert_array_equal(vectors[["w9", "w2", "w9"]], vectors.matrix[[9, 2, 9]])
    assert vectors[[]].shape == (0, 12)


def test_an_unknown_word_is_named_with_a_near_one() -> None:
    with pytest.raises(VocabularyError, match=r"'snwo'.*did you mean 'snow'"):
        WordVectors(["snow", "fire"], np.eye(2))["snwo"]


def test_a_subset_keeps_vectors_counts_and_order(vectors: WordVectors) -> None:
    some = vectors.subset(["w9", "w2"])
    assert some.words == ("w9", "w2")
    assert some.vocabulary.counts.tolist() == [191, 198]
    assert some.vocabulary.lowercase is True
    np.testing.assert_array_equal(some.matrix, vectors.matrix[[9, 2]])


def test_a_subset_of_nothing_is_empty(vectors: WordVectors) -> None:
    assert vectors.subset([]).matrix.shape == (0, 12)


@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (2,), (2, 2, 1)])
def test_a_matrix_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="2 rows"):
        WordVectors(["a", "b"], np.zeros(shape))


def test_whole_numbers_become_floats_and_half_stays_half() -> None:
    assert WordVectors(["a"], [[1, 2]]).matrix.dtype == np.float32
    assert WordVectors(["a"], np.ones((1, 2), np.float16)).matrix.dtype == np.float16
    assert WordVectors(["a"], np.ones((1, 2), np.float16))["a"].dtype == np.float32


def test_a_memory_mapped_matrix_is_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.ones((3, 2), np.float32))
    mapped = np.load(tmp_path / "m.npy", mmap_mode="r")
    vectors = WordVectors(["a", "b", "c"], mapped)
    assert isinstance(vectors.matrix, np.memmap)
    assert np.shares_memory(vectors.matrix, mapped)


def test_vectors_iterate_over_their_words_and_say_what_they_are(vectors: WordVectors) -> None:
    assert list(vectors) == list(vectors.words)
    assert len(vectors) == 200
    assert repr(vectors) == "WordVectors(200 words x 12)"


def test_encode_with_weights_is_the_weighted_mean(vectors: WordVectors) -> None:
    weights = np.random.default_rng(1).random(200)
    weights[7] = 0
    encoded = vectors.encode(["w1 w2 unknown w1", "w7", "", "W9!"], weights=weights)
    rows = [[1, 2, 1], [], [], [9]]
    expected = [
        np.average(vectors.matrix[some], axis=0, weights=weights[some]) if some else np.zeros(12) for some in rows
    ]
    np.testing.assert_allclose(encoded, expected, atol=1e-6)
    np.testing.assert_allclose(vectors.encode("w1 w2 w1", weights=weights), expected[0], atol=1e-6)


def test_equal_weights_are_no_weights(vectors: WordVectors) -> None:
    texts = ["w1 w2 w3", "w4 w4 w5"]
    np.testing.assert_allclose(vectors.encode(texts, weights=np.full(200, 3)), vectors.encode(texts), atol=1e-6)


@pytest.mark.parametrize("weights", [np.ones(3), np.ones((200, 1)), np.full(200, -1), np.full(200, np.nan)])
def test_weights_that_do_not_fit_are_refused(vectors: WordVectors, weights: NDArray[np.float64]) -> None:
    with pytest.raises(UsageError, match="200 finite weights"):
        vectors.encode(["w1"], weights=weights)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_encode_of_other_numbers_adds_them_as_float32(vectors: WordVectors, dtype: type) -> None:
    other = WordVectors(vectors.vocabulary, vectors.matrix.astype(dtype))
    texts = ["w1 w2 w1", "", "w199 none"]
    same = WordVectors(vectors.vocabulary, other.matrix.astype(np.float32)).encode(texts)
    assert other.encode(texts).dtype == np.float32
    np.testing.assert_array_equal(other.encode(texts), same)


def test_encode_of_a_matrix_that_lies_otherwise_is_the_same(vectors: WordVectors) -> None:
    turned = WordVectors(vectors.vocabulary, np.asfortranarray(vectors.matrix))
    np.testing.assert_array_equal(turned.encode(["w1 w2", "w3"]), vectors.encode(["w1 w2", "w3"]))


@pytest.mark.parametrize("k", [1, 7, 500])
@pytest.mark.parametrize("scores", [1 << 23, 64])
def test_the_nearest_of_each_are_the_nearest_one_by_one(
    monkeypatch: pytest.MonkeyPatch, vectors: WordVectors, k: int, scores: int
) -> None:
    monkeypatch.setattr("stillvec.row_search._SCORES", scores)
    monkeypatch.setattr("stillvec.vectors._QUERIES", 11)
    queries = [f"w{number}" for number in range(0, 200, 7)]
    for found, query in zip(vectors.nearest_batch(queries, k, exclude=["w4", "w8"]), queries, strict=True):
        alone = vectors.nearest(query, k, exclude=["w4", "w8"])
        assert [word for word, _ in found] == [word for word, _ in alone]
        assert [score for _, score in found] == pytest.approx([score for _, score in alone], abs=1e-6)


def test_the_nearest_of_each_row_of_a_table_are_those_of_its_vectors(vectors: WordVectors) -> None:
    table = np.stack([vectors["w3"] * 5, np.zeros(12, np.float32), -vectors["w9"]])
    first, zero, last = vectors.nearest_batch(table, k=4)
    assert first[0] == ("w3", pytest.approx(1, abs=1e-6))
    assert zero == [("w0", 0.0), ("w1", 0.0), ("w2", 0.0), ("w3", 0.0)]
    assert [word for word, _ in last] == [word for word, _ in vectors.nearest(-vectors["w9"], k=4)]


@pytest.mark.parametrize("sign", [1, -1])
def test_the_nearest_of_each_are_those_by_brute_force_whatever_lengths_vectors_have(
    monkeypatch: pytest.MonkeyPatch, sign: int
) -> None:
    monkeypatch.setattr("stillvec.row_search._SCORES", 300)
    random = np.random.default_rng(5)
    matrix = np.abs(random.normal(size=(400, 3))) * 10 ** random.uniform(-4, 4, (400, 1))
    matrix[[7, 100, 101, 399]] = 0
    queries = sign * matrix[::13]  # with a sign, all cosines are below zero, and those of zero vectors best
    lengths = np.linalg.norm(matrix, axis=1)
    cosines = queries @ matrix.T / np.maximum(np.outer(lengths[::13], lengths), 1e-30)
    found = WordVectors([f"w{row}" for row in range(400)], matrix.astype(np.float32)).nearest_batch(queries, k=6)
    best = np.sort(cosines, axis=1)[:, :-7:-1]
    np.testing.assert_allclose([[score for _, score in each] for each in found], best, atol=1e-6)
    for each, own in zip(found, cosines, strict=True):
        np.testing.assert_allclose([own[int(word[1:])] for word, _ in each], [score for _, score in each], atol=1e-6)


@pytest.mark.parametrize("scores", [1 << 23, 2])
def test_of_equally_near_words_the_first_ones_come(monkeypatch: pytest.MonkeyPatch, scores: int) -> None:
    monkeypatch.setattr("stillvec.row_search._SCORES", scores)
    alike = WordVectors([f"a{number}" for number in range(30)], np.ones((30, 2)))
    assert [word for word, _ in alike.nearest_batch(["a1"], k=3)[0]] == ["a0", "a2", "a3"]
    assert [word for word, _ in alike.nearest("a1", k=3)] == ["a0", "a2", "a3"]


def test_no_queries_have_no_neighbours_and_no_vectors_have_none_either(vectors: WordVectors) -> None:
    assert vectors.nearest_batch([]) == []
    assert vectors.nearest_batch(np.zeros((0, 12))) == []
    assert WordVectors([], np.zeros((0, 3), np.float32)).nearest_batch(np.ones((2, 3))) == [[], []]


def test_a_table_of_queries_of_another_shape_is_refused(vectors: WordVectors) -> None:
    with pytest.raises(UsageError, match="dimension 12"):
        vectors.nearest_batch(np.ones((2, 5)))
    with pytest.raises(UsageError, match=r"k: .*got 0"):
        vectors.nearest_batch(["w1"], k=0)
