"""Short name → part, loaded when asked for; settings from mappings, with the nearest known key in the error."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from stillvec.errors import CallError, MissingExtra

T = TypeVar("T")


def nearest_known(name: str, known: Iterable[str]) -> str:
    """A sentence's end that helps: the nearest known name, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(names)}."


class Registry(Generic[T]):
    """A table of `name: "module:attribute"`; nothing is imported until its name is asked for."""

    def __init__(self, kind: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise CallError(f"There is no {self.kind} called {name!r}; {nearest_known(name, self._entries)}")
        module, _, attribute = self._entries[name].partition(":")
        return typing.cast(T, getattr(importlib.import_module(module), attribute))


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional package, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(module.partition(".")[0], extra, purpose) from None


def settings_from(kind: type[T], values: Mapping[str, object], where: str = "") -> T:
    """A frozen dataclass from a mapping; strings are read as the field's type (`"3"` → `3`)."""
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    types = typing.get_type_hints(kind)
    ready: dict[str, object] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in fields or not fields[name].init:
            place = f" in {where}" if where else ""
            raise CallError(f"{kind.__name__} has no setting {key!r}{place}; {nearest_known(name, fields)}")
        ready[name] = _read_value(value, types[name], key)
    return kind(**ready)


def _read_value(value: object, wanted: Any, key: str) -> object:
    """Turn text into the type a field wants, and lists into the tuples that frozen settings hold."""
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, str):
        return value
    choices = typing.get_args(wanted) or (wanted,)
    for choice in choices:
        if choice is bool and value.lower() in {"true", "false", "yes", "no"}:
            return value.lower() in {"true", "yes"}
        if choice in (int, float):
            try:
                return choice(value)
            except ValueError:
                continue
        if choice is str or value == choice:
            return value
        if choice is type(None) and value.lower() == "none":
            return None
    names = ", ".join(getattr(choice, "__name__", repr(choice)) for choice in choices)
    raise CallError(f"The setting {key!r} takes {names}, not {value!r}.")
