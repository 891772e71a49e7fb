"""The registry of refinement steps."""

from collections.abc import Callable

from stillvec.registry import Registry
from stillvec.vectors import WordVectors

Step = Callable[[WordVectors], WordVectors]
STEPS: Registry[type[Step]] = Registry(
    "step",
    {
        "all_but_the_top": "stillvec.refinement.all_but_the_top:AllButTheTop",
        "auto": "stillvec.refinement.auto_steps:AutoSteps",
        "center": "stillvec.refinement.center:Center",
        "feature_tuples": "stillvec.refinement.feature_tuples:FeatureTuples",
        "graph_retrofit": "stillvec.refinement.graph_retrofit:GraphRetrofit",
        "natural_alpha": "stillvec.refinement.natural_alpha:NaturalAlpha",
        "normalize": "stillvec.refinement.normalize:Normalize",
        "pca": "stillvec.refinement.pca:Pca",
        "prune": "stillvec.refinement.prune:Prune",
        "quantize": "stillvec.refinement.quantize:Quantize",
        "retrofit": "stillvec.refinement.retrofit:Retrofit",
        "select_dims": "stillvec.refinement.select_dims:SelectDims",
        "sif": "stillvec.refinement.sif:Sif",
        "similarity_order": "stillvec.refinement.similarity_order:SimilarityOrder",
        "subword": "stillvec.refinement.subword:Subword",
        "whiten": "stillvec.refinement.whiten:Whiten",
    },
    renamed={"alpha": "natural_alpha", "dimensions": "select_dims", "unit": "normalize", "weight": "sif"},
)
