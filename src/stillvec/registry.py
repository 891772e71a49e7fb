"""Short name → part, loaded when asked for; settings from mappings; errors that name the nearest known."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
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
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    place = f" in {where}" if where else ""
    presets = getattr(kind, "PRESETS", None)  # sets of settings by the name of a paper
    if presets is not None and (name := values.get("settings", "stillvec")) != "stillvec":
        if str(name) not in presets:
            raise CallError(f"{kind.__name__} has no settings {name!r}{place}; {nearest_known(str(name), presets)}")
        values = {**presets[str(name)], **values}
    ready: dict[str, object] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in fields:
            raise CallError(f"{kind.__name__} has no setting {key!r}{place}; {nearest_known(name, fields)}")
        try:
            ready[name] = _read(value, hints[name])
        except ValueError:
            raise CallError(f"The setting {key!r}{place} takes {_described(hints[name])}, not {value!r}.") from None
    for name, field in fields.items():
        if name not in ready and field.default is field.default_factory is dataclasses.MISSING:
            raise CallError(f"{kind.__name__}{place} needs the setting {name!r}: {_described(hints[name])}.")
    return kind(**ready)


def part_from(registry: Registry[type[T]], text: str) -> T:
    """The part that `NAME[:key=value,...]` asks for; what has no `=` goes on with the value before (`weights=1,2`)."""
    name, colon, rest = text.partition(":")
    kind = registry[name.strip()]
    values: dict[str, list[str]] = {}
    for item in rest.split(",") if colon else []:
        key, equals, value = item.partition("=")
        if equals and key.strip() not in values:
            values[key.strip()] = [value.strip()]
        elif equals or not values:
            told = f"{key.strip()!r} stands there twice" if equals else f"{item!r} came"
            raise CallError(f"After the colon of the {registry.kind} {name!r} stands key=value, each once; {told}.")
        else:
            [*values.values()][-1].append(item.strip())
    ready = {key: value if len(value) > 1 else value[0] for key, value in values.items()}
    return settings_from(kind, ready, f"the {registry.kind} {name}")


def _read(value: object, wanted: Any) -> object:
    """A value as a field of type `wanted` holds it; ValueError where it cannot be."""
    origin, inside = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _read_first(value, inside)
    if origin is typing.Literal:
        alike = [choice for choice in inside if value in (choice, str(choice))]
        return alike[0] if alike else _refuse(value)
    if origin is tuple:
        items = list(value) if isinstance(value, list | tuple) else [value]
        kinds = inside[:1] * len(items) if inside[-1] is ... else inside
        return tuple(_read(item, each) for item, each in zip(items, kinds, strict=True))
    return _PLAIN[wanted][1](value) if wanted in _PLAIN else value


def _read_first(value: object, choices: tuple[Any, ...]) -> object:
    """The first type that takes the value; its own type goes first, text and paths (which take all) last."""
    for choice in sorted(choices, key=lambda choice: 2 if choice in (str, Path) else type(value) is not choice):
        try:
            return _read(value, choice)
        except ValueError:
            continue
    return _refuse(value)


def _refuse(value: object) -> typing.NoReturn:
    raise ValueError(value)


def _number(kind: type[int] | type[float]) -> Callable[[Any], object]:
    taken = (str, int) if kind is int else (str, int, float)
    return lambda value: kind(value) if type(value) in taken else _refuse(value)


def _truth(value: object) -> bool:
    spelt = {"true": True, "yes": True, "false": False, "no": False}
    return spelt[word] if (word := str(value).lower()) in spelt else _refuse(value)


_PLAIN: dict[Any, tuple[str, Callable[[Any], object]]] = {
    bool: ("true or false", _truth),
    int: ("a whole number", _number(int)),
    float: ("a number", _number(float)),
    str: ("text", lambda v: str(v) if type(v) in (str, int, float) else _refuse(v)),
    Path: ("a path", lambda v: Path(v) if isinstance(v, str | Path) else _refuse(v)),
    type(None): ("none", lambda v: None if v is None or str(v).lower() == "none" else _refuse(v)),
}


def _described(wanted: Any) -> str:
    """A type in words."""
    origin, inside = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_described, inside))
    if origin is typing.Literal:
        return " or ".join(map(repr, inside))
    if origin is tuple:
        return f"a list, each of it {_described(inside[0])}"
    return _PLAIN[wanted][0] if wanted in _PLAIN else str(getattr(wanted, "__name__", wanted))
