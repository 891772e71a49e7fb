"""--list-steps and --list-methods: the parts of a registry with their settings."""

import argparse
import dataclasses
import inspect
from typing import Any

from stillvec.cli.console import note
from stillvec.registry import Registry


class List(argparse.Action):
    """A flag that prints the parts of a registry (`const`) and exits; they are imported only then."""

    def __init__(self, option_strings: list[str], dest: str, const: Registry[Any], help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, const=const, help=help, default=argparse.SUPPRESS)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for name in self.const:
            note(describe_part(name, self.const[name]))
        parser.exit()


def describe_part(name: str, part: type[Any]) -> str:
    """`NAME:key=default,...` (a required setting has no value) and the first line of its file."""
    settings = ",".join(map(_setting, dataclasses.fields(part)))
    summary = (inspect.getmodule(part).__doc__ or "").strip().splitlines()[0]
    return f"{name}{':' * bool(settings)}{settings}\n    {summary}"


def _setting(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return f"{field.name}="
    if field.default in (None, ()):
        return f"[{field.name}=]"
    if isinstance(field.default, bool):
        return f"{field.name}={str(field.default).lower()}"
    if isinstance(field.default, tuple):
        return f"{field.name}={'|'.join(map(str, field.default))}"
    return f"{field.name}={field.default:.4g}" if isinstance(field.default, float) else f"{field.name}={field.default}"
