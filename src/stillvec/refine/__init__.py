"""One space in, one out: a step is a frozen set of settings, called with vectors, and never changes its input."""

from collections.abc import Callable

from stillvec.registry import Registry
from stillvec.vectors import WordVectors

STEPS: Registry[type[Callable[[WordVectors], WordVectors]]] = Registry(
    "step",
    {
        "all_but_the_top": "stillvec.refine.all_but_the_top:AllButTheTop",
        "center": "stillvec.refine.center:Center",
        "pca": "stillvec.refine.pca:Pca",
        "unit": "stillvec.refine.unit:Unit",
    },
)

__all__ = ["STEPS"]
