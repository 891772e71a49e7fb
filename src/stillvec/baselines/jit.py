"""Loops that numba compiles on first call. Written against numba 0.61 to 0.68, with public API only.

Machine code is cached next to the source or, if that is read-only, in the user's cache folder (`NUMBA_CACHE_DIR` names
another place); where nothing can be written, it is compiled at each start.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from stillvec.registry import require

F = TypeVar("F", bound=Callable[..., Any])
# Sums may be reordered, and so vectorised; NaN and infinity keep their meaning, since divergence must be noticed.
_FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}


def compile_loop(loop: F) -> F:
    """Compile to machine code that releases the GIL."""
    numba = require("numba", "train", "Training of GloVe and Sent2vec")
    options = {"nogil": True, "fastmath": _FASTMATH, "error_model": "numpy"}  # checks for zero prevent vectorising
    try:
        compiled = numba.njit(**options, cache=True)(loop)
    except RuntimeError:  # no folder to cache in
        compiled = numba.njit(**options)(loop)
    return cast(F, compiled)
