"""The steps by their names: each a frozen set of settings, called with vectors, that never changes its input."""

from __future__ import annotations

from collections.abc import Callable

from stillvec.registry import Registry
from stillvec.vectors import WordVectors

Step = Callable[[WordVectors], WordVectors]
STEPS: Registry[type[Step]] = Registry(
    "step",
    {
        "all_but_the_top": "stillvec.refinement.all_but_the_top:AllButTheTop",
        "alpha": "stillvec.refinement.natural_alpha:Alpha",
        "auto": "stillvec.refinement.auto_steps:Auto",
        "center": "stillvec.refinement.center:Center",
        "dimensions": "stillvec.refinement.select_dims:Dimensions",
        "feature_tuples": "stillvec.refinement.feature_tuples:FeatureTuples",
        "graph_retrofit": "stillvec.refinement.graph_retrofit:GraphRetrofit",
        "pca": "stillvec.refinement.pca:Pca",
        "prune": "stillvec.refinement.prune:Prune",
        "quantize": "stillvec.refinement.quantize:Quantize",
        "retrofit": "stillvec.refinement.retrofit:Retrofit",
        "similarity_order": "stillvec.refinement.similarity_order:SimilarityOrder",
        "subword": "stillvec.refinement.subword:Subword",
        "unit": "stillvec.refinement.normalize:Unit",
        "weight": "stillvec.refinement.sif:Weight",
        "whiten": "stillvec.refinement.whiten:Whiten",
    },
)
