"""Zipfian whitening (Yokoi et al. 2024): mean and covariance as a reader of the corpus meets the words.

`μ = Σ p(w) x_w`, `S = Σ p(w) (x_w - μ)(x_w - μ)ᵀ = QΔQᵀ`, `x'_w = (x_w - μ) Q (Δ + ridge · mean of Δ)^-1/2`, with p(w)
the corpus's real frequencies. With uniform frequencies it is the usual whitening, over the list of words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.errors import UsageError
from stillvec.numerics import apply_map, principal_axes, raise_to_power, second_moments, weighted_mean
from stillvec.refinement.frequencies import Frequencies, frequencies
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Whiten:
    SUMMARY: ClassVar[str] = "whitened, weighted by word frequency"
    PAPERS: ClassVar[tuple[str, ...]] = ("yokoi-2024",)

    frequencies: Frequencies = "counts"
    ridge: float = 0.0  # a share of the mean variance, added to all: directions of little variance grow less

    def __post_init__(self) -> None:
        if not self.ridge >= 0:
            raise UsageError(f"A ridge is at least 0, and {self.ridge} came.")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        shares = frequencies(vectors.vocabulary, self.frequencies)
        mean = weighted_mean(vectors.matrix, shares)
        values, axes = principal_axes(second_moments(vectors.matrix, mean, shares))
        scales = raise_to_power(np.where(values > 0, values + self.ridge * values.mean(), 0), -0.5)
        return vectors.with_matrix(apply_map(vectors.matrix, axes * scales, mean))
