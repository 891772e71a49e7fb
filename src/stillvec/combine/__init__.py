"""Several spaces in, one out."""

from stillvec.combine.concat import Concat
from stillvec.registry import Registry

COMBINERS: Registry[type[Concat]] = Registry("combination", {"concat": "stillvec.combine.concat:Concat"})

__all__ = ["COMBINERS"]
