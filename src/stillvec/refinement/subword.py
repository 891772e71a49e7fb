"""Character n-grams for out-of-vocabulary words, fitted to the vectors (Zhao et al. 2018, in floret's form).

`min over T of sum_w c_w^power ‖mean over g of T[h(g)] - (v_w - m)‖² + ridge ‖T‖²`, m the mean vector, by conjugate
gradients with a diagonal preconditioner; then m is added to every row. The word vectors do not change. All words have
equal weight (`power=0`), since the table serves rare words. The defaults best reconstructed held-out rare words
(docs/unseen-words.md).
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors

_COLUMNS = 64  # dimensions per block: 50 MB for each of five tables at 200,000 buckets
_MOST = 200_000  # default limit of buckets
_MOST_THREADS = 4
_NGRAM_BYTES = 1500  # per word, of the sparse matrices

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Subword:
    SUMMARY: ClassVar[str] = "a table of character n-grams fitted, for out-of-vocabulary words"
    PAPERS: ClassVar[tuple[str, ...]] = ("zhao-2018",)

    buckets: int | None = None  # rows of the table (default: two per word, at most 200,000)
    minn: int = 2
    maxn: int = 5
    hash_count: int = 1
    ridge: float = 0.02
    power: float = 0.0  # weight of a word: count^power
    sweeps: int = 20

    def __post_init__(self) -> None:
        Ngrams(self.buckets or 1, self.minn, self.maxn, self.hash_count)
        if self.ridge <= 0 or self.sweeps < 1 or self.power < 0 or self.buckets == 0:
            raise UsageError.expected("ridge > 0, sweeps >= 1, buckets >= 1 and power >= 0", self)

    def __call__(self, vectors: WordVectors) -> WordVectors:
        if not len(vectors):
            raise UsageError.expected("at least one word", 0, where="subword")
        buckets = self.buckets or count_buckets(len(vectors))
        ngrams = Ngrams(buckets, self.minn, self.maxn, self.hash_count)
        targets = np.array(vectors.matrix, np.float32)
        # zero vectors carry no information
        live = targets.any(axis=1) & np.array([word != "" for word in vectors.words])
        targets = targets[live]
        mean = targets.mean(axis=0, keepdims=True, dtype=np.float64).astype(np.float32) if len(targets) else 0
        words = [vectors.words[row] for row in np.flatnonzero(live).tolist()]
        weight = np.power(np.maximum(vectors.vocabulary.counts[live], 1), self.power)
        table = fit_table(design(ngrams, words), targets - mean, weight / weight.mean(), self.ridge, self.sweeps) + mean
        subwords = SubwordTable(ngrams, _halve_precision(table))
        return vectors.with_matrix(
            np.array(vectors.matrix), subwords=subwords, contexts=vectors.contexts, senses=vectors.senses
        )


def count_buckets(n_words: int) -> int:
    return min(_MOST, max(1000, 2 * n_words))


def fit_bytes(n_words: int, dim: int) -> int:
    """Bytes at the peak of fitting n-grams with the defaults."""
    buckets = count_buckets(n_words)
    targets, table = 4 * n_words * dim, 4 * buckets * dim
    solving = _count_threads() * 4 * _COLUMNS * (7 * buckets + 2 * n_words)
    return 3 * targets + _NGRAM_BYTES * n_words + max(table + solving, 5 * table)


def _count_threads() -> int:
    return min(_MOST_THREADS, os.cpu_count() or 1)


def design(ngrams: Ngrams, words: list[str]) -> Any:
    """Weight of each row of the table in the mean of each word, sparse (n, B)."""
    from scipy.sparse import csr_array

    rows, lengths = ngrams.rows(words)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    shares = np.repeat(1 / np.maximum(lengths, 1), lengths).astype(np.float32)
    result = csr_array((shares, rows, ends), shape=(len(words), ngrams.buckets))
    result.sum_duplicates()
    return result


def fit_table(shares: Any, targets: Floats, weight: NDArray[Any], ridge: float, sweeps: int) -> Floats:
    """Ridge regression of the table (B, dim); each block of dimensions is independent, so threads do not matter."""
    back = (shares * weight.astype(np.float32)[:, None]).T.tocsr()  # (B, n)
    diagonal = (back.multiply(shares.T).sum(axis=1) + ridge).astype(np.float32)[:, None]
    table = np.zeros((shares.shape[1], targets.shape[1]), np.float32)

    def solve(first: int) -> None:
        block = np.ascontiguousarray(targets[:, first : first + _COLUMNS])
        table[:, first : first + _COLUMNS] = _solve(shares, back, diagonal, block, np.float32(ridge), sweeps)

    with ThreadPoolExecutor(_count_threads()) as pool:
        [*pool.map(solve, range(0, targets.shape[1], _COLUMNS))]
    return table


def _solve(shares: Any, back: Any, diagonal: Floats, targets: Floats, ridge: np.float32, sweeps: int) -> Floats:
    """`(A'CA + ridge) T = A'C Y` by conjugate gradients, independently per column."""
    left = back @ targets  # (B, d)
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


def _halve_precision(table: Floats) -> NDArray[Any]:
    """In half precision, unless that loses more than 0.1%."""
    with np.errstate(over="ignore"):
        half = table.astype(np.float16)
    error = np.linalg.norm(half.astype(np.float32) - table)
    return half if error <= 1e-3 * np.linalg.norm(table) else table
