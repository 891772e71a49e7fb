"""Several spaces in, one out: a method is a frozen set of settings, called with vectors; its inputs never change."""

from typing import Protocol

from stillvec.registry import Registry
from stillvec.vectors import WordVectors


class Combiner(Protocol):
    def __call__(self, *spaces: WordVectors) -> WordVectors: ...


COMBINERS: Registry[type[Combiner]] = Registry(
    "method",
    {
        "concat": "stillvec.combine.concat:Concat",
        "average": "stillvec.combine.average:Average",
        "svd": "stillvec.combine.svd:Svd",
        "gcca": "stillvec.combine.gcca:Gcca",
        "geometric": "stillvec.combine.geometric:Geometric",
        "align": "stillvec.combine.align:Align",
    },
)

__all__ = ["COMBINERS", "Combiner"]
