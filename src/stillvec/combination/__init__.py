"""Combiners: frozen dataclasses, called with several sets of vectors, that return one and never change their inputs."""

from typing import Protocol

from stillvec.registry import Registry
from stillvec.vectors import WordVectors


class Combiner(Protocol):
    def __call__(self, *spaces: WordVectors) -> WordVectors: ...


COMBINERS: Registry[type[Combiner]] = Registry(
    "method",
    {
        "concat": "stillvec.combination.concat:Concat",
        "average": "stillvec.combination.average:Average",
        "svd": "stillvec.combination.svd:Svd",
        "gcca": "stillvec.combination.gcca:Gcca",
        "geometric": "stillvec.combination.geometric:Geometric",
        "align": "stillvec.combination.align:Align",
        "invariant": "stillvec.combination.invariant:InvariantMap",
    },
)

__all__ = ["COMBINERS", "Combiner"]
