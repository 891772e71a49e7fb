"""Flags that several commands have, old names of flags, and `--list-steps`, `--list-methods`."""

import argparse
import dataclasses
import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stillvec.cli.console import note
from stillvec.errors import UsageError, warn_renamed
from stillvec.files import check_not_input
from stillvec.registry import Registry

_JSON_SUMMARY = "print only JSON; with a file, print as usual and write JSON to the file"
_INPUTS = ("vectors", "against", "corpus", "thing", "explain", "by", "canonical")
_SEPARATE = "words_follow_json"
_COMMON: dict[str, dict[str, Any]] = {  # flags that mean the same everywhere
    "vectors": {"metavar": "VECTORS", "help": "a folder of vectors, a file in any format, or hf://OWNER/NAME"},
    "--out": {"required": True, "metavar": "DIR", "help": "the folder to write"},
    "--force": {
        "action": "store_true",
        "help": "replace what exists; in a folder that stillvec did not write, only files of the same names",
    },
    "--quiet": {"action": "store_true", "help": "no progress"},
    "--dim": {"type": int, "metavar": "N", "help": "dimensions of the result (default: the method's own)"},
}


def add_common(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add flags that mean the same in every command."""
    for name in names:
        parser.add_argument(name, **_COMMON[name])


def add_json(parser: argparse.ArgumentParser, summary: str = _JSON_SUMMARY, *, words_follow: bool = True) -> None:
    """Add `--json`, which prints JSON instead of tables, and `--json FILE.json`, which writes it in addition to them.

    `words_follow`: other arguments may follow, so that only a name that ends in .json is a file (see `separate_json`).
    """
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE.json", help=summary)
    parser.set_defaults(**{_SEPARATE: words_follow})


def separate_json(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """`--json WORD` as `--json=-` and WORD, in commands whose arguments may follow."""
    if not parser.get_default(_SEPARATE):
        return [*words]
    end = words.index("--") if "--" in words else len(words)
    followers = [*words[1:end], "--"]
    return [
        "--json=-" if word == "--json" and after != "-" and not after.endswith(".json") else word
        for word, after in zip(words[:end], followers, strict=False)
    ] + [*words[end:]]


def add_cache(parser: argparse.ArgumentParser, what: str) -> None:
    cache = parser.add_argument("--context-cache", metavar="DIR", help=f"where {what}")
    add_renamed(parser, "--store", cache)


def add_oov(parser: argparse.ArgumentParser, summary: str) -> None:
    add_renamed(parser, "--unknown", parser.add_argument("--oov", metavar="NAME[:key=value,...]", help=summary))


def add_renamed(parser: argparse.ArgumentParser, old: str, new: argparse.Action) -> None:
    """Accept `old` for the option `new`, with a warning; it is not shown in the help."""

    class Renamed(argparse.Action):
        def __call__(
            self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, used: str | None = None
        ) -> None:
            warn_renamed("flag", old, new.option_strings[-1])
            new(parser, namespace, values, used)

    options = {name: getattr(new, name) for name in ("nargs", "const", "type", "choices")}
    given = {name: value for name, value in options.items() if value is not None}
    hidden: dict[str, Any] = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    parser.add_argument(old, action=Renamed, dest=new.dest, **hidden, **given)


def name_texts(texts: Iterable[str]) -> dict[str, str]:
    """Names and paths of each `[NAME=]FILE`."""
    named: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = Path(text).name, text
        if name in named:
            raise UsageError.conflict(f"Two texts are named {name!r}", cure="name them with NAME=FILE")
        named[name] = path
    return named


def check_reports(options: argparse.Namespace) -> None:
    """Refuse a report or figure that would replace the vectors, the corpus or the scores that it is about."""
    inputs = [path for name in _INPUTS for path in _as_list(getattr(options, name, None))]
    for name in ("json", "report", "export", "out"):
        for file in _as_list(getattr(options, name, None)):
            check_not_input(file, inputs)


def _as_list(value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    return [path for path in values if isinstance(path, str | Path) and str(path) != "-"]


class List(argparse.Action):
    """A flag that prints the parts of a registry (`const`), which are imported only then, and exits.

    `NAME:key=default,...` (a required setting has no value) and the first line of the part's file, or of the part if
    its file has several.
    """

    def __init__(self, option_strings: list[str], dest: str, const: Registry[Any], help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, const=const, help=help, default=argparse.SUPPRESS)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        files = {name: inspect.getmodule(self.const[name]) for name in self.const}
        for name, file in files.items():
            settings = ",".join(map(_setting, dataclasses.fields(self.const[name])))
            alone = [*files.values()].count(file) == 1
            summary = ((file if alone else self.const[name]).__doc__ or "").strip().splitlines()[0]
            note(f"{name}{':' * bool(settings)}{settings}\n    {summary}")
        parser.exit()


def _setting(field: dataclasses.Field[Any]) -> str:
    default: Any = field.default
    if default in (None, ()):
        return f"[{field.name}=]"
    if default is dataclasses.MISSING:
        default = ""
    elif isinstance(default, bool):
        default = str(default).lower()
    elif isinstance(default, tuple):
        default = "|".join(map(str, default))
    return f"{field.name}={default:.4g}" if isinstance(default, float) else f"{field.name}={default}"
