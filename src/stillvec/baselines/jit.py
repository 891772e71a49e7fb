"""Loops that numba compiles on their first call, kept for the next start wherever there is room for it.

What is compiled lies beside the source, or in the user's cache folder where that cannot be written (`NUMBA_CACHE_DIR`
names another place); where nothing can be written it is compiled at each start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from stillvec.registry import require

F = TypeVar("F", bound=Callable[..., Any])
# Sums in any order, so that they go several at once; what is not a number stays so, for a training that diverges.
_LOOSE = {"reassoc", "contract", "arcp", "nsz", "afn"}


def compiled(loop: F) -> F:
    """As machine code, which leaves Python's lock alone."""
    numba = require("numba", "train", "Training of GloVe and Sent2vec")
    given = {"nogil": True, "fastmath": _LOOSE, "error_model": "numpy"}  # a check for zeros would go one by one
    try:
        made = numba.njit(**given, cache=True)(loop)
    except RuntimeError:  # no folder for it
        made = numba.njit(**given)(loop)
    return cast(F, made)
