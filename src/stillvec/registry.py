"""Registries of parts by short name, imported on first use; settings from mappings, with errors that suggest a name."""

import dataclasses
import importlib
import importlib.util
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from stillvec.errors import MissingExtra, UsageError, warn_renamed
from stillvec.notation import Spec, parse_spec

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of `name: "module:attribute"`; a module is imported when its name is first looked up."""

    def __init__(self, kind: str, entries: Mapping[str, str], renamed: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self._entries = dict(entries)
        self.renamed = dict(renamed or {})  # old name → new name, still accepted

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self.renamed

    def register(self, name: str, target: str, *, first: bool = False) -> None:
        """Add an entry, `module:attribute`, from outside the package; `first` puts it before all others."""
        self._entries = {name: target, **self._entries} if first else {**self._entries, name: target}

    def resolve(self, name: str) -> str:
        """The present name of an entry; an old one is accepted with a warning."""
        if name in self.renamed:
            warn_renamed(self.kind, name, self.renamed[name])
        return self.renamed.get(name, name)

    def __getitem__(self, name: str) -> T:
        name = self.resolve(name)
        if name not in self._entries:
            raise UsageError.unknown(self.kind, name, self._entries)
        module, _, attribute = self._entries[name].partition(":")
        return typing.cast(T, getattr(importlib.import_module(module), attribute))

    def name_of(self, entry: object) -> str:
        """The name of the class of an object; modules that are already imported are looked at first."""
        names = sorted(self._entries, key=lambda name: self._entries[name].partition(":")[0] not in sys.modules)
        return next((name for name in names if self[name] is type(entry)), type(entry).__name__)


def import_attribute(package: str, name: str, modules: Mapping[str, str]) -> Any:
    """The attribute `name` of the module that `modules` names for it; for `__getattr__` of a lazy package."""
    if name not in modules:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(importlib.import_module(modules[name]), name)


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional package, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(module.partition(".")[0], extra, purpose) from None


def require_all(packages: Mapping[str, str], purpose: str) -> None:
    """Check before the work that packages are installed; `packages` maps them to their extras. One error names all."""
    missing = {package: extra for package, extra in packages.items() if not _is_installed(package)}
    if missing:
        raise MissingExtra(", ".join(missing), ",".join(dict.fromkeys(missing.values())), purpose)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


@typing.runtime_checkable
class HasPresets(typing.Protocol):
    """A class of settings that has those of papers, by their names."""

    PRESETS: Mapping[str, Mapping[str, object]]


@typing.runtime_checkable
class HasRenamedSettings(typing.Protocol):
    """A class of settings some of which had other names."""

    RENAMED: Mapping[str, str]  # old name → new name


def read_new_names(kind: object) -> Mapping[str, str]:
    """The new names of settings by their old ones, of a class of settings or an object of it."""
    return kind.RENAMED if isinstance(kind, HasRenamedSettings) else {}


def _add_preset(kind: object, values: Mapping[str, object], owner: str) -> Mapping[str, object]:
    name = values.get("settings", "stillvec")
    if not isinstance(kind, HasPresets) or name == "stillvec":
        return values
    if str(name) not in kind.PRESETS:
        raise UsageError.unknown("preset", str(name), kind.PRESETS, where=owner)
    return {**kind.PRESETS[str(name)], **values}


def settings_from(kind: type[T], values: Mapping[str, object], where: str = "") -> T:
    """A frozen dataclass from a mapping; strings are converted to the type of the field (`"3"` → `3`)."""
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    owner = where or kind.__name__
    values, renamed = _add_preset(kind, values, owner), read_new_names(kind)
    ready: dict[str, object] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name in renamed:
            warn_renamed("setting", name, renamed[name])
            name = renamed[name]
        if name not in fields:
            raise UsageError.unknown("setting", key, fields, where=owner)
        try:
            ready[name] = _convert(value, hints[name])
        except ValueError:
            place = f"setting {key!r} of {owner}"
            raise UsageError.expected(_describe(hints[name]), repr(value), where=place) from None
    for name, field in fields.items():
        if name not in ready and field.default is field.default_factory is dataclasses.MISSING:
            message = f"{owner} requires the setting {name!r}: {_describe(hints[name])}."
            raise UsageError(message, code="missing-setting")
    return kind(**ready)


def check_least(settings: object, **least: float) -> None:
    """Raise an error for the first setting that is below its least value; None is accepted."""
    for name, smallest in least.items():
        value = getattr(settings, name)
        if value is not None and not value >= smallest:
            raise UsageError.expected(f"at least {smallest}", value, where=f"setting {name!r}")


def check_positive(settings: object, *names: str) -> None:
    """Raise an error for the first setting that is not above 0; None is accepted."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and not value > 0:
            raise UsageError.expected("a number above 0", value, where=f"setting {name!r}")


def create(registry: Registry[type[T]], spec: str | Spec) -> T:
    """The entry that `NAME[:key=value,...]` names, with these settings."""
    parsed = parse_spec(spec) if isinstance(spec, str) else spec
    return settings_from(registry[parsed.name], parsed.settings, f"{registry.kind} {parsed.name!r}")


def _convert(value: object, wanted: Any) -> object:
    """Convert a value to the type `wanted`; ValueError where that is not possible."""
    origin, inside = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _convert_first(value, inside)
    if origin is typing.Literal:
        equal = [choice for choice in inside if value in (choice, str(choice))]
        return equal[0] if equal else _refuse(value)
    if origin is tuple:
        items = list(value) if isinstance(value, list | tuple) else [value]
        kinds = inside[:1] * len(items) if inside[-1] is ... else inside
        return tuple(_convert(item, each) for item, each in zip(items, kinds, strict=True))
    return _PLAIN[wanted][1](value) if wanted in _PLAIN else value


def _convert_first(value: object, choices: tuple[Any, ...]) -> object:
    """Convert to the first type that fits: the type of the value first, text and paths (which fit everything) last."""
    for choice in sorted(choices, key=lambda choice: 2 if choice in (str, Path) else type(value) is not choice):
        try:
            return _convert(value, choice)
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


def _describe(wanted: Any) -> str:
    origin, inside = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_describe, inside))
    if origin is typing.Literal:
        return " or ".join(map(repr, inside))
    if origin is tuple:
        return f"one or more values, each {_describe(inside[0])}"
    return _PLAIN[wanted][0] if wanted in _PLAIN else str(getattr(wanted, "__name__", wanted))
