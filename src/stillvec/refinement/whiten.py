"""Zipfian whitening (Yokoi et al. 2024): mean and covariance weighted by word frequency.

`μ = Σ p(w) x_w`, `S = Σ p(w) (x_w - μ)(x_w - μ)ᵀ = QΔQᵀ`, `x'_w = (x_w - μ) Q (Δ + ridge · mean of Δ)^-1/2`, with p(w)
the corpus frequencies. Uniform frequencies give the usual whitening.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.numerics import apply_map, principal_axes, raise_to_power, second_moments, sum_weighted_rows
from stillvec.refinement.sif import Frequencies, frequencies
from stillvec.registry import check_least
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Whiten:
    SUMMARY: ClassVar[str] = "whitened, weighted by word frequency"
    PAPERS: ClassVar[tuple[str, ...]] = ("yokoi-2024",)

    frequencies: Frequencies = "counts"
    ridge: float = 0.0  # share of the mean variance that is added to all

    def __post_init__(self) -> None:
        check_least(self, ridge=0)

    def __call__(self, vectors: WordVectors) -> WordVectors:
        shares = frequencies(vectors.vocabulary, self.frequencies)
        mean = sum_weighted_rows(vectors.matrix, shares)
        values, axes = principal_axes(second_moments(vectors.matrix, mean, shares))
        scales = raise_to_power(np.where(values > 0, values + self.ridge * values.mean(), 0), -0.5)
        return vectors.with_matrix(apply_map(vectors.matrix, axes * scales, mean))
