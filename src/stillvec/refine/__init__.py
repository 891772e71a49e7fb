"""One space in, one out: a step is a frozen set of settings, called with vectors, and never changes its input."""

from collections.abc import Callable

from stillvec.registry import Registry
from stillvec.vectors import WordVectors

STEPS: Registry[type[Callable[[WordVectors], WordVectors]]] = Registry(
    "step",
    {
        "all_but_the_top": "stillvec.refine.all_but_the_top:AllButTheTop",
        "center": "stillvec.refine.center:Center",
        "graph_retrofit": "stillvec.refine.graph_retrofit:GraphRetrofit",
        "pca": "stillvec.refine.pca:Pca",
        "retrofit": "stillvec.refine.retrofit:Retrofit",
        "unit": "stillvec.refine.unit:Unit",
    },
)

__all__ = ["STEPS"]
