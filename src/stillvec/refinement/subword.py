"""Character n-grams for words never seen, fitted to the vectors there are (Zhao et al. 2018, in floret's form).

`min over T of sum_w c_w^power ‖mean over g of T[h(g)] - (v_w - m)‖² + ridge ‖T‖²`, m the mean vector, by conjugate
gradients with the diagonal as preconditioner; then m is added to every row, so that it is in every mean. The words keep
their vectors. A word seen once counts as much as any other (`power=0`): it is for words as rare that a table is made.
The defaults are those that best gave back the vectors of rare words that were left out (docs/unseen-words.md).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors

_COLUMNS = 64  # dimensions solved at once: 50 MB of each of five tables for 200,000 buckets
_MOST = 200_000  # buckets, unless more are asked for

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Subword:
    SUMMARY: ClassVar[str] = "a table of character n-grams fitted, for out-of-vocabulary words"
    PAPERS: ClassVar[tuple[str, ...]] = ("zhao-2018",)

    buckets: int | None = None  # rows of the table; two a word and at most 200,000, if none are given
    minn: int = 2
    maxn: int = 5
    hash_count: int = 1
    ridge: float = 0.02
    power: float = 0.0  # of a word's count, its weight
    sweeps: int = 20

    def __post_init__(self) -> None:
        Ngrams(self.buckets or 1, self.minn, self.maxn, self.hash_count)
        if self.ridge <= 0 or self.sweeps < 1 or self.power < 0 or self.buckets == 0:
            raise UsageError(f"The ridge is above 0, sweeps and buckets at least 1, the power at least 0; {self} came.")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        if not len(vectors):
            raise UsageError("N-grams are fitted to the vectors of words, and there are none.")
        buckets = self.buckets or min(_MOST, max(1000, 2 * len(vectors)))
        ngrams = Ngrams(buckets, self.minn, self.maxn, self.hash_count)
        wanted = np.array(vectors.matrix, np.float32)
        live = wanted.any(axis=1) & np.array([word != "" for word in vectors.words])  # a zero vector says nothing
        wanted = wanted[live]
        middle = wanted.mean(axis=0, keepdims=True, dtype=np.float64).astype(np.float32) if len(wanted) else 0
        words = [word for word, here in zip(vectors.words, live.tolist(), strict=True) if here]
        weight = np.power(np.maximum(vectors.vocabulary.counts[live], 1), self.power)
        table = fitted(design(ngrams, words), wanted - middle, weight / weight.mean(), self.ridge, self.sweeps) + middle
        return vectors.with_matrix(np.array(vectors.matrix), subwords=SubwordTable(ngrams, _in_half(table)))


def design(ngrams: Ngrams, words: list[str]) -> Any:
    """The share of each row of the table in the mean of each word, sparse (n, B)."""
    from scipy.sparse import csr_array

    rows, lengths = ngrams.rows(words)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    shares = np.repeat(1 / np.maximum(lengths, 1), lengths).astype(np.float32)
    found = csr_array((shares, rows, ends), shape=(len(words), ngrams.buckets))
    found.sum_duplicates()
    return found


def fitted(shares: Any, wanted: Floats, weight: NDArray[Any], ridge: float, sweeps: int) -> Floats:
    """The table (B, dim) that the ridge prefers; blocks of dimensions are solved apart, so threads decide nothing."""
    back = (shares * weight.astype(np.float32)[:, None]).T.tocsr()  # (B, n)
    diagonal = (back.multiply(shares.T).sum(axis=1) + ridge).astype(np.float32)[:, None]
    table = np.zeros((shares.shape[1], wanted.shape[1]), np.float32)

    def solve(first: int) -> None:
        some = np.ascontiguousarray(wanted[:, first : first + _COLUMNS])
        table[:, first : first + _COLUMNS] = _solved(shares, back, diagonal, some, np.float32(ridge), sweeps)

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        [*pool.map(solve, range(0, wanted.shape[1], _COLUMNS))]
    return table


def _solved(shares: Any, back: Any, diagonal: Floats, wanted: Floats, ridge: np.float32, sweeps: int) -> Floats:
    """`(A'CA + ridge) T = A'C Y` by conjugate gradients, each column its own."""
    left = back @ wanted  # (B, d)
    table = np.zeros_like(left)
    step = scaled = left / diagonal
    size = _products(left, scaled)
    for _ in range(sweeps):
        turned = back @ (shares @ step) + ridge * step
        length = np.divide(size, bent := _products(step, turned), out=np.zeros_like(size), where=bent > 0)
        table += length * step
        left -= length * turned
        scaled = left / diagonal
        size, before = _products(left, scaled), size
        step = scaled + np.divide(size, before, out=np.zeros_like(size), where=before > 0) * step
    return np.asarray(table)


def _products(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("nd,nd->d", a, b))


def _in_half(table: Floats) -> NDArray[Any]:
    """Half the bytes, where the numbers are of a size that half precision holds."""
    with np.errstate(over="ignore"):
        half = table.astype(np.float16)
    error = np.linalg.norm(half.astype(np.float32) - table)
    return half if error <= 1e-3 * np.linalg.norm(table) else table
