"""Checks of what a caller gave, so that wrong input is one sentence of ours and never an error of NumPy."""

from __future__ import annotations

import inspect
import operator
import os
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
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
    if not _is_whole(value) or (count := operator.index(value)) < least:  # type: ignore[arg-type]
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


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise an error for the first argument that does not fit its annotation; at the start of a call, give `locals()`.

    What a value means, such as an unknown name or a number out of range, is checked where it is used.
    """
    for name, (hint, several) in _read_hints(function).items():
        if name in arguments:
            for value in arguments[name] if several else [arguments[name]]:
                if not _fits(value, hint):
                    raise UsageError.expected(_describe_hint(hint), describe(value), where=name)


@lru_cache(maxsize=256)
def _read_hints(function: Callable[..., Any]) -> dict[str, tuple[Any, bool]]:
    """The type of each parameter that can be resolved, and whether it collects positional arguments."""
    names = vars(sys.modules[inspect.unwrap(function).__module__])
    hints = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = parameter.annotation
        try:
            hint = eval(hint, names) if isinstance(hint, str) else hint
        except NameError:  # imported for type checkers only
            continue
        if hint is not inspect.Parameter.empty:
            hints[name] = (hint, parameter.kind is inspect.Parameter.VAR_POSITIONAL)
    return hints


def _fits(value: Any, hint: Any) -> bool:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if isinstance(value, str) and "\0" in value and any(typing.get_origin(part) is os.PathLike for part in inside):
            return False  # no path has a NUL
        return any(_fits(value, choice) for choice in inside)
    if origin is typing.Literal:
        return isinstance(value, str | int)
    if hint is None or hint is type(None):
        return value is None
    if hint is bool:
        return isinstance(value, bool) or type(value).__name__ == "bool" or (type(value) is int and value in (0, 1))
    if hint in (int, float):
        return _is_whole(value) or (hint is float and isinstance(value, float))
    if hint is str or (origin or hint) is os.PathLike:
        return isinstance(value, hint if hint is str else os.PathLike)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_fits(item, inside[1]) for item in value.values())
    if origin in _COLLECTIONS:
        listed = origin is Iterable or isinstance(value, Sequence) or hasattr(value, "tolist")
        if isinstance(value, str | bytes | Mapping) or not (listed and isinstance(value, Iterable)):
            return False
        parts = inside[:1] if origin is not tuple or inside[-1] is ... else inside
        if not isinstance(value, Collection):
            return True  # a generator can be read only once
        if len(parts) > 1 and len(parts) != len(value):
            return False
        return all(map(_fits, value, parts * len(value) if len(parts) == 1 else parts))
    if origin is Callable:
        return callable(value)
    is_class = isinstance(hint, type) and hint is not Any and not getattr(hint, "_is_protocol", False)
    return isinstance(value, hint) if is_class else True


def _is_whole(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and operator.index(value) is not None
    except TypeError:
        return False


_COLLECTIONS = (Iterable, Sequence, Collection, list, tuple)
_NAMES: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a string",
    os.PathLike: "a path",
    Mapping: "a mapping",
    Callable: "a function",
}


def _describe_hint(hint: Any) -> str:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        names = [_describe_hint(choice) for choice in inside if choice is not type(None)]
        if "a path" in names and "a string" in names:
            names.remove("a string")
        return " or ".join(dict.fromkeys([*names, *(["None"] if type(None) in inside else [])]))
    if origin is typing.Literal:
        return " or ".join(map(repr, inside))
    if origin is tuple and inside[-1] is not ...:
        return f"a tuple of {len(inside)}"
    if origin in _COLLECTIONS:
        return "a list" if inside[0] is Any else f"a list, each {_describe_hint(inside[0])}"
    return _NAMES.get(origin or hint) or str(getattr(hint, "__name__", hint))
