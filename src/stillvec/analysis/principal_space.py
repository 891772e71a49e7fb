"""A space turned into its principal axes, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.vectors import WordVectors

Floats = NDArray[np.float64]
BLOCK = 1 << 14


def blocks(vectors: WordVectors) -> Iterator[Floats]:
    """Rows in double precision, some at a time: millions of them are never copied whole."""
    for start in range(0, len(vectors), BLOCK):
        yield np.asarray(vectors.matrix[start : start + BLOCK], np.float64)


@dataclass(frozen=True)
class PrincipalSpace:
    """A space turned into its principal axes: `Z = (X - mean) U`."""

    vectors: WordVectors

    @cached_property
    def mean(self) -> Floats:
        return np.asarray(sum(block.sum(0) for block in blocks(self.vectors)) / max(len(self.vectors), 1))

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        gram = np.zeros((self.vectors.dim,) * 2)
        for block in blocks(self.vectors):
            gram += (block - self.mean).T @ (block - self.mean)
        values, axes = np.linalg.eigh(gram / max(len(self.vectors), 1))
        values, axes = np.maximum(values[::-1], 0), axes[:, ::-1]
        signs = np.sign(axes[np.abs(axes).argmax(0), np.arange(len(axes))])
        return values, axes * np.where(signs == 0, 1, signs)

    @property
    def variances(self) -> Floats:
        """(d,), the largest first."""
        return self._spectrum[0]

    @property
    def axes(self) -> Floats:
        """(d, d) in columns."""
        return self._spectrum[1]

    def project(self, first: int, last: int) -> WordVectors:
        """Components `first` to `last` - 1, counted from 0, as a space."""
        if not 0 <= first < last <= self.vectors.dim:
            raise UsageError(f"There are components 0 to {self.vectors.dim - 1}; {first} to {last - 1} came.")
        return self._mapped(self.axes[:, first:last])

    def without_top(self, count: int) -> WordVectors:
        """The centred space with the first `count` components taken out; 0 only centres."""
        if not 0 <= count < self.vectors.dim:
            raise UsageError(f"Of {self.vectors.dim} components {count} cannot be taken out; give fewer.")
        top = self.axes[:, :count]
        return self._mapped(np.eye(self.vectors.dim) - top @ top.T)

    def _mapped(self, by: Floats) -> WordVectors:
        dtype = np.result_type(self.vectors.matrix.dtype, np.float32)
        matrix = np.empty((len(self.vectors), by.shape[1]), dtype)
        for start, block in zip(range(0, len(matrix), BLOCK), blocks(self.vectors), strict=True):
            matrix[start : start + BLOCK] = (block - self.mean) @ by
        return self.vectors.with_matrix(matrix)
