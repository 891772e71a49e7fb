"""Arithmetic that several packages need, written once; NumPy and SciPy only."""

from stillvec.numerics.bm25 import bm25_norms, bm25_weights
from stillvec.numerics.gaussians import Gaussians, compare_gaussians, compose_operators
from stillvec.numerics.hamming import count_differing_bits, have_one_magnitude, pack_signs
from stillvec.numerics.kmeans import Clustering, kmeans, nearest_centres
from stillvec.numerics.rows import (
    BLOCK_ROWS,
    cosines,
    iterate_blocks,
    nearest_rows,
    partial_correlation,
    rank_values,
    spearman,
    top_k,
    unit_rows,
)
from stillvec.numerics.spectrum import (
    apply_map,
    column_variances,
    principal_axes,
    principal_plane,
    raise_to_power,
    second_moments,
    sum_weighted_rows,
)

__all__ = [
    "BLOCK_ROWS",
    "Clustering",
    "Gaussians",
    "apply_map",
    "bm25_norms",
    "bm25_weights",
    "column_variances",
    "compare_gaussians",
    "compose_operators",
    "cosines",
    "count_differing_bits",
    "have_one_magnitude",
    "iterate_blocks",
    "kmeans",
    "nearest_centres",
    "nearest_rows",
    "pack_signs",
    "partial_correlation",
    "principal_axes",
    "principal_plane",
    "raise_to_power",
    "rank_values",
    "second_moments",
    "spearman",
    "sum_weighted_rows",
    "top_k",
    "unit_rows",
]
