"""Checks of what a caller gave, so that wrong input is one sentence of ours and never an error of NumPy."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from stillvec.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def describe(value: object) -> str:
    """A wrong value for a message: itself if it is short, else its type."""
    text = repr(value) if isinstance(value, str | int | float | type(None)) else ""
    return text if text and len(text) <= 40 else f"a {type(value).__name__}"


def check_count(value: object, where: str, *, least: int = 1) -> int:
    """A whole number of at least `least`."""
    try:
        count = operator.index(value) if not isinstance(value, bool) else None  # type: ignore[arg-type]
    except TypeError:
        count = None
    if count is None or count < least:
        raise UsageError.expected(f"a whole number of at least {least}", describe(value), where=where)
    return count


def check_strings(values: object, where: str, *, what: str = "strings") -> list[str]:
    """A list of strings from an iterable of them, such as a list, a generator or a column of a table."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        cure = "put it into a list" if isinstance(values, str) else ""
        raise UsageError.expected(f"a list of {what}", describe(values), where=where, cure=cure)
    strings = [*values]
    if {*map(type, strings)} <= {str}:
        return strings
    for number, string in enumerate(strings):
        if not isinstance(string, str):
            raise UsageError.expected("a string", describe(string), where=f"{where}[{number}]")
    return strings


def check_path(value: object, where: str) -> str | os.PathLike[str]:
    """A path: a string or an object such as `pathlib.Path`."""
    if not isinstance(value, str | os.PathLike) or not (text := os.fspath(value)) or "\0" in str(text):
        raise UsageError.expected("a path", describe(value), where=where)
    return value


def check_numbers(values: Any, where: str, shape: tuple[int, ...], *, what: str) -> NDArray[np.float32]:
    """Finite numbers of the given shape, described by `what`; -1 in the shape is any length."""
    import numpy as np

    try:
        numbers = np.asarray(values, np.float32)
    except (TypeError, ValueError, OverflowError):
        raise UsageError.expected(what, describe(values), where=where) from None
    wanted = tuple(length if length >= 0 else size for length, size in zip(shape, numbers.shape, strict=False))
    if numbers.shape != wanted or len(wanted) != len(shape):
        raise UsageError.expected(what, f"shape {numbers.shape}", where=where)
    if not np.isfinite(numbers).all():
        raise UsageError.expected(what, "NaN or infinity", where=where, code="not-finite")
    return numbers
