"""Memory-map NumPy's `.npy` files, and tell a damaged file from too little memory."""

import warnings
from os import PathLike
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import is_out_of_memory

# A header is a Python literal: parsing a damaged one may end in any of these.
_BROKEN = (ValueError, EOFError, TypeError, SyntaxError, TokenError, MemoryError, OverflowError, OSError)


def map_array(path: str | PathLike[str]) -> Any:
    """The array of a file, read-only, or the archive that it is; ValueError, with the reason, if it is damaged."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers written by Python 2
            return np.load(path, mmap_mode="r", allow_pickle=False)
    except _BROKEN as error:
        if is_out_of_memory(error) and _has_header(path):
            raise MemoryError from None
        raise ValueError(str(error) or type(error).__name__) from None


def map_numbers(path: str | PathLike[str]) -> NDArray[Any]:
    """The finite numbers of a file, read-only; ValueError, with the reason, for all else."""
    table = map_array(path)
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiu" or not np.isfinite(table).all():
        raise ValueError("values that are not finite numbers")
    return table


def _has_header(path: str | PathLike[str]) -> bool:
    try:
        with open(path, "rb") as stream:
            read = {1: np.lib.format.read_array_header_1_0}.get(
                np.lib.format.read_magic(stream)[0], np.lib.format.read_array_header_2_0
            )
            read(stream)
    except _BROKEN:
        return False
    return True
