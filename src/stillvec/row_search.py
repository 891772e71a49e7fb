"""`RowSearch`: the rows of a matrix with the highest cosines."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.numerics import count_differing_bits, have_one_magnitude, iterate_blocks, pack_signs, unit_rows
from stillvec.numerics.array_types import Floats32, Matrix, Rows

_BLOCK = 1 << 16  # rows per block, so that a memory-mapped matrix is never copied whole
_SCORES = 1 << 22  # cosines in memory
_ROUNDING = 1e-5  # bound on the rounding error of a product and a quotient in fp32


class RowSearch:
    """Cosines with the rows of a matrix, one per word, and the best of them."""

    def __init__(self, matrix: Matrix, words: Sequence[str]) -> None:
        self.matrix = matrix
        self.words = words

    @cached_property
    def norms(self) -> Floats32:
        norms = np.empty(len(self.matrix), np.float32)
        for rows, block in iterate_blocks(self.matrix, np.float32, _BLOCK):
            norms[rows] = np.linalg.norm(block, axis=1)
            if not np.isfinite(norms[rows]).all():
                check_finite(block, self.words[rows])
        return np.where(norms > 0, norms, np.inf).astype(np.float32)

    @cached_property
    def _codes(self) -> NDArray[np.uint64] | None:
        """The signs as packed bits, if all numbers are 1 or -1, as after the step `bits`."""
        if not have_one_magnitude(self.matrix[:1]):
            return None
        is_code = all((np.abs(block) == 1).all() for _, block in iterate_blocks(self.matrix, self.matrix.dtype))
        return pack_signs(self.matrix) if is_code else None

    def cosines(self, vector: Floats32) -> Floats32:
        """With every row (V,)."""
        unit = unit_rows(vector)
        if (of_codes := self._dots_of_codes(unit[None], slice(None))) is not None:
            dots = np.asarray(of_codes[0])
        elif self.matrix.dtype == np.float32:
            dots = np.asarray(self.matrix @ unit)  # no copy, so no blocks
        else:
            blocks = iterate_blocks(self.matrix, np.float32, _BLOCK)
            dots = np.concatenate([unit[:0], *(block @ unit for _, block in blocks)])
        dots /= self.norms
        return dots

    def best_batch(self, queries: Floats32, k: int) -> tuple[Rows, Floats32]:
        """Rows and cosines of the k best rows per unit query (n, k); a block adds only what beats the best so far."""
        rows = np.zeros((len(queries), k), np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        step = max(k + 1, _SCORES // max(1, len(queries)))
        pending: list[tuple[Matrix, ...]] = []  # merged together, as a merge costs about as much as a block
        for first in range(0, len(self.matrix) if k else 0, step):
            norms = self.norms[first : first + step]
            dots = self._dots_of_codes(queries, slice(first, first + step))  # (n, B)
            if dots is None:
                dots = queries @ np.asarray(self.matrix[first : first + step], np.float32).T
            least = scores[:, -1:]
            if first == 0:  # initial threshold: the k-th best of a part of this block
                few = max(4 * k, _BLOCK >> 6)
                part = np.partition(dots[:, :few] / norms[:few], -k, axis=1)
                least = np.nextafter(part[:, -k, None], np.float32(-np.inf))
            query, row = np.divmod(np.flatnonzero(dots > _least(least, norms)), len(norms))
            cosines = dots[query, row] / norms[row]
            beats = cosines > least[query, 0]
            pending.append((query[beats], row[beats] + first, cosines[beats]))
            n_pending = sum(len(block[0]) for block in pending)
            if first == 0 or first + step >= len(self.matrix) or n_pending > len(queries):
                _merge(rows, scores, *map(np.concatenate, zip(*pending, strict=True)))
                pending.clear()
        return rows, scores

    def _dots_of_codes(self, queries: Floats32, rows: slice) -> Floats32 | None:
        """The products of unit queries and rows (n, rows) by Hamming distance, if all of both are codes."""
        if self._codes is None or not have_one_magnitude(queries):
            return None
        distances = [count_differing_bits(self._codes[rows], code) for code in pack_signs(queries)]
        return np.asarray((self.matrix.shape[1] - 2 * np.stack(distances)) / np.sqrt(self.matrix.shape[1]), np.float32)


def check_finite(rows: Floats32, words: Sequence[str | int]) -> Floats32:
    """The rows, unless one has NaN or infinity: in a large file, `load` looks at a sample of the rows only."""
    if np.isfinite(rows).all():
        return rows
    finite = np.isfinite(rows.reshape(len(words), -1)).all(axis=1)
    got = f"NaN or infinity in the vector of {words[int(np.argmin(finite))]!r}"
    raise FormatError.expected("finite numbers", got, code="not-finite")


def best_rows(scores: Floats32, k: int, excluded: set[int]) -> list[int]:
    """The k rows with the highest scores, best first, without the excluded ones."""
    n_best = min(k + len(excluded), len(scores))
    if not len(scores):
        return []
    part = scores[: max(_BLOCK >> 4, 4 * n_best)]  # its n-th best is a lower bound
    top = np.flatnonzero(scores >= np.partition(part, len(part) - n_best)[len(part) - n_best])
    top = top[np.lexsort((top, -scores[top]))]
    return [row for row in top.tolist() if row not in excluded][:k]


def _least(cosines: Floats32, norms: Floats32) -> Floats32:
    """Lower bound of the dot products whose cosine exceeds `cosines`, for any of the norms."""
    longest = norms.max(where=np.isfinite(norms), initial=0)
    bounds = cosines * norms.min() * (1 - _ROUNDING), cosines * longest * (1 + _ROUNDING)
    return np.asarray(np.where(cosines > 0, *bounds))


def _merge(rows: Rows, scores: Floats32, query: Rows, row: Rows, score: Floats32) -> None:
    """Merge (query, row, score) into the k best of each query (n, k) in place; ties go to the first row."""
    k = rows.shape[1]
    touched = np.unique(query)
    query = np.concatenate([np.repeat(touched, k), query])
    row = np.concatenate([rows[touched].ravel(), row])
    score = np.concatenate([scores[touched].ravel(), score])
    order = np.lexsort((row, -score, query))
    begins = np.searchsorted(query[order], touched)
    best = order[begins[:, None] + np.arange(k)]  # (touched, k)
    rows[touched], scores[touched] = row[best], score[best]
