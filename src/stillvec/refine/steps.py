"""The steps by their names: each a frozen set of settings, called with vectors, that never changes its input."""

from __future__ import annotations

from collections.abc import Callable

from stillvec.registry import Registry
from stillvec.vectors import WordVectors

Step = Callable[[WordVectors], WordVectors]
STEPS: Registry[type[Step]] = Registry(
    "step",
    {
        "all_but_the_top": "stillvec.refine.all_but_the_top:AllButTheTop",
        "alpha": "stillvec.refine.alpha:Alpha",
        "auto": "stillvec.refine.auto:Auto",
        "center": "stillvec.refine.center:Center",
        "dimensions": "stillvec.refine.dimensions:Dimensions",
        "feature_tuples": "stillvec.refine.feature_tuples:FeatureTuples",
        "graph_retrofit": "stillvec.refine.graph_retrofit:GraphRetrofit",
        "pca": "stillvec.refine.pca:Pca",
        "prune": "stillvec.refine.prune:Prune",
        "quantize": "stillvec.refine.quantize:Quantize",
        "retrofit": "stillvec.refine.retrofit:Retrofit",
        "similarity_order": "stillvec.refine.similarity_order:SimilarityOrder",
        "subword": "stillvec.refine.subword:Subword",
        "unit": "stillvec.refine.unit:Unit",
        "weight": "stillvec.refine.weight:Weight",
        "whiten": "stillvec.refine.whiten:Whiten",
    },
)
