"""One notation for methods, steps, combiners and tasks: `NAME[:key=value,...]`, and lists of these with commas.

A key that is given twice has both values, as has a value without a key: `x:k=1,k=2` and `x:k=1,2` are the same. Whether
a setting takes several values is for the setting to say. In a list, a known name begins the next item.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from stillvec.errors import UsageError

Value = str | list[str]


@dataclass(frozen=True)
class Spec:
    """A name and the settings written after it."""

    name: str
    settings: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        lists = {key: [value] if isinstance(value, str) else value for key, value in self.settings.items()}
        written = ",".join(f"{key}={value}" for key, values in lists.items() for value in values)
        return f"{self.name}:{written}" if written else self.name


def parse_spec(text: str) -> Spec:
    """One item; every comma separates its settings."""
    name, _, rest = text.partition(":")
    return Spec(name.strip(), _parse_settings(rest.split(","), text))


def parse_specs(text: str, known: Container[str]) -> list[Spec]:
    """Several items; a part that begins with a known name, or has a colon before its `=`, begins a new one."""
    groups: list[tuple[str, list[str]]] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, rest = part.partition(":")
        begins = name.strip() in known or not groups or (bool(colon) and "=" not in name)
        if begins and ("=" not in name or not groups):
            if "=" in name:
                raise UsageError.expected("NAME or NAME:key=value,...", repr(part))
            groups.append((name.strip(), [rest]))
        elif not groups[-1][1][0] and "=" not in part:  # no settings to continue: meant as a name
            groups.append((part, [""]))
        else:
            groups[-1][1].append(part)
    return [Spec(name, _parse_settings(parts, text)) for name, parts in groups]


def _parse_settings(parts: list[str], text: str) -> dict[str, Value]:
    values: dict[str, list[str]] = {}
    key = ""
    for part in filter(None, (part.strip() for part in parts)):
        left, equals, right = part.partition("=")
        if equals and left.strip().replace("-", "_").isidentifier():
            key = left.strip()
            values.setdefault(key, []).append(right.strip())
        elif key:
            values[key].append(part)
        else:
            raise UsageError.expected("key=value after the colon", repr(part), where=repr(text))
    return {name: items[0] if len(items) == 1 else items for name, items in values.items()}
