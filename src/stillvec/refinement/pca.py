"""Principal component analysis: fewer dimensions at the least squared error."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.numerics import principal_axes
from stillvec.refinement.center import Center
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Pca:
    SUMMARY: ClassVar[str] = "fewer dimensions, by principal components"

    dim: int = 300

    def __call__(self, vectors: WordVectors) -> WordVectors:
        if not 1 <= self.dim <= vectors.dim:
            raise UsageError.expected(f"1 to {vectors.dim}", self.dim, where="dim of pca")
        centred = Center()(vectors)
        axes = principal_directions(centred.matrix)[1][:, : self.dim]
        return vectors.with_matrix(centred.matrix @ axes)


def principal_directions(centred: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Variances (D,), largest first, and directions (D, D) in columns."""
    values, axes = principal_axes(np.asarray(centred.T @ centred, np.float64) / max(len(centred), 1))
    return values, axes.astype(np.float32)
