"""Similarity of another order (Artetxe et al. 2018; Vulić et al. 2020): `XᵀX = QΔQᵀ`, `X' = X Q Δ^α`.

α = (n - 1)/2 gives the similarity of order n, `X'X'ᵀ = (XXᵀ)^n`; 0 leaves cosines unchanged; -1/2 whitens without
centring. Vulić et al. recommend -0.25 for the space that is mapped and 0.15 for the target.
"""

from dataclasses import dataclass
from typing import ClassVar

from stillvec.numerics import apply_map, principal_axes, raise_to_power, second_moments
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class SimilarityOrder:
    SUMMARY: ClassVar[str] = "similarity of another order"
    PAPERS: ClassVar[tuple[str, ...]] = ("artetxe-2018", "vulic-2020")

    alpha: float = -0.25

    def __call__(self, vectors: WordVectors) -> WordVectors:
        values, axes = principal_axes(second_moments(vectors.matrix))
        return vectors.with_matrix(apply_map(vectors.matrix, axes * raise_to_power(values, self.alpha)))
