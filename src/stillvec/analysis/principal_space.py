"""A space in the coordinates of its principal axes, computed in blocks."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.numerics import apply_map, principal_axes, second_moments, sum_weighted_rows
from stillvec.vectors import WordVectors

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PrincipalSpace:
    """A space in the coordinates of its principal axes: `Z = (X - mean) U`."""

    vectors: WordVectors

    @cached_property
    def mean(self) -> Floats:
        n_rows = len(self.vectors)
        return sum_weighted_rows(self.vectors.matrix, np.full(n_rows, 1 / max(n_rows, 1)))

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        return principal_axes(second_moments(self.vectors.matrix, self.mean) / max(len(self.vectors), 1))

    @property
    def variances(self) -> Floats:
        """Variances (d,), largest first."""
        return self._spectrum[0]

    @property
    def axes(self) -> Floats:
        """Axes (d, d) in columns."""
        return self._spectrum[1]

    def project(self, first: int, last: int) -> WordVectors:
        """Components `first` to `last` - 1, counted from 0, as a space."""
        if not 0 <= first < last <= self.vectors.dim:
            raise UsageError.expected(f"components 0 to {self.vectors.dim - 1}", f"{first} to {last - 1}")
        return self._map_rows(self.axes[:, first:last])

    def without_top(self, count: int) -> WordVectors:
        """The centred space without the first `count` components; 0 only centres."""
        if not 0 <= count < self.vectors.dim:
            raise UsageError.expected(f"0 to {self.vectors.dim - 1} components", count)
        top = self.axes[:, :count]
        return self._map_rows(np.eye(self.vectors.dim) - top @ top.T)

    def _map_rows(self, by: Floats) -> WordVectors:
        dtype = np.result_type(self.vectors.matrix.dtype, np.float32)
        return self.vectors.with_matrix(apply_map(self.vectors.matrix, by, self.mean, dtype))
