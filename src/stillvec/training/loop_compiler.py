"""Compiles inner loops with numba, which is imported when the first one is.

Machine code is cached in `numba` in the user's cache folder (`NUMBA_CACHE_DIR` names another place); where nothing can
be written, or others could write, it is compiled at each start: numba unpickles what it finds there. Written against
numba 0.61 to 0.68, with public API only.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from stillvec.files.private_files import create_private_folder, is_private
from stillvec.files.user_cache import cache_folder
from stillvec.registry import require

COMPILER_BYTES = 160 << 20  # that numba, LLVM and the machine code of a few loops take
F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered, and so vectorised; NaN and infinity keep their meaning, since divergence must be noticed.
_FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}


def compile_loop(loop: F) -> F:
    """Compile to machine code that releases the GIL."""
    numba = require("numba", "train", "Training by compiled loops")
    options = {"nogil": True, "fastmath": _FASTMATH, "error_model": "numpy"}  # checks for zero prevent vectorising
    chosen, folder = numba.config.CACHE_DIR, cache_folder() / "numba"
    try:
        if not chosen:
            numba.config.CACHE_DIR = str(create_private_folder(folder))  # read by njit
        compiled = numba.njit(**options, cache=bool(chosen) or is_private(folder))(loop)
    except (RuntimeError, OSError):  # no folder to cache in
        compiled = numba.njit(**options)(loop)
    finally:
        numba.config.CACHE_DIR = chosen
    return cast(F, compiled)
