"""The first dimensions of vectors: what they keep, and the warning where their order means nothing."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors, load, refine, save
from stillvec.errors import StillvecWarning, UsageError
from stillvec.subwords import Ngrams, SubwordTable

WORDS = [f"w{row}" for row in range(300)]
RANDOM = np.random.default_rng(0)
ROWS = (RANDOM.normal(size=(300, 20)) * 0.8 ** np.arange(20)) @ np.linalg.qr(RANDOM.normal(size=(20, 20)))[0]
TEXTS = ["w1 w2 unknown w2", "", "w299"]


def vectors(*, ordered: bool = True) -> WordVectors:
    plain = WordVectors(Vocabulary(WORDS, range(300, 0, -1)), ROWS.astype(np.float32))
    return refine(plain, "pca:dim=20") if ordered else plain


def test_encode_with_fewer_dimensions_is_the_beginning_of_the_whole() -> None:
    whole, weights = vectors(), np.linspace(0, 1, 300)
    assert np.allclose(whole.encode(TEXTS, dimensions=6), whole.encode(TEXTS)[:, :6], atol=1e-7)
    assert np.allclose(whole.encode("w1 w2", dimensions=1), whole.encode("w1 w2")[:1], atol=1e-7)
    cut = whole.encode(TEXTS, weights=weights, dimensions=6)
    assert np.allclose(cut, whole.encode(TEXTS, weights=weights)[:, :6], atol=1e-7)
    assert whole.truncate(20) is whole


def test_encode_of_unknown_words_has_fewer_dimensions_too() -> None:
    ngrams = SubwordTable(Ngrams(50), RANDOM.normal(size=(50, 20)).astype(np.float32))
    plain = vectors()
    whole = WordVectors(plain.vocabulary, plain.matrix, subwords=ngrams)
    assert np.allclose(whole.encode(TEXTS, dimensions=6), whole.encode(TEXTS)[:, :6], atol=1e-6)
    assert whole.truncate(6)["unknown"].shape == (6,)


def test_truncated_vectors_are_vectors_of_their_own(tmp_path: object) -> None:
    whole = vectors()
    cut = whole.truncate(6)
    other = WordVectors(whole.vocabulary, np.array(whole.matrix[:, :6]))
    assert np.shares_memory(cut.matrix, whole.matrix)
    for near, expected in (
        (cut.nearest("w3"), other.nearest("w3")),
        (cut.nearest_batch(["w3"])[0], other.nearest("w3")),
    ):
        assert [word for word, _ in near] == [word for word, _ in expected]
        assert [cosine for _, cosine in near] == pytest.approx([cosine for _, cosine in expected], abs=1e-6)
    assert cut.provenance["truncated"] == {"from": 20, "to": 6}
    save(cut, f"{tmp_path}/cut")
    assert np.array_equal(load(f"{tmp_path}/cut").matrix, cut.matrix)
    assert load(f"{tmp_path}/cut").provenance["truncated"] == {"from": 20, "to": 6}
    for again in (copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        assert again.truncate(6).dim == 6


def test_dimensions_in_no_order_are_warned_about() -> None:
    assert vectors().measure_order(5) > 0.99
    assert vectors(ordered=False).measure_order(5) < 0.5
    assert vectors(ordered=False).measure_order(20) == pytest.approx(1)
    with pytest.warns(StillvecWarning, match="pca:dim=20"):
        vectors(ordered=False).truncate(5)
    with pytest.warns(StillvecWarning, match="pca:dim=20"):
        vectors(ordered=False).encode("w1", dimensions=5)


def test_vectors_without_variance_have_any_order() -> None:
    for rows in (np.zeros((3, 4)), np.zeros((0, 4)), np.ones((1, 4))):
        table = WordVectors([f"w{row}" for row in range(len(rows))], rows)
        assert table.measure_order(2) == 1
        assert table.truncate(2).dim == 2


@pytest.mark.parametrize("dimensions", [0, -1, 21, 2.5, "5"])
def test_a_number_of_dimensions_that_does_not_exist_is_refused(dimensions: Any) -> None:
    for call in (partial(vectors().encode, "w1", dimensions=dimensions), partial(vectors().measure_order, dimensions)):
        with pytest.raises(UsageError, match="1 to 20" if dimensions == 21 else "dimensions"):
            call()


def test_rows_with_nan_are_not_measured() -> None:
    rows = np.array(vectors().matrix)
    rows[7, 3] = np.nan
    assert WordVectors(WORDS, rows).measure_order(5) > 0.99
