"""stillvec completion SHELL: a script with which bash, zsh or fish completes verbs, options, names and files.

What there is to complete is read from the parsers of all verbs, which takes seconds, since torch is imported; it is
kept in the cache until a file of ours changes, so that a line in a shell's start-up file costs next to nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from stillvec.cli import VERBS
from stillvec.errors import MissingExtra
from stillvec.files import atomic_file, cache_folder, digest

NAMED = {  # verb and option: the table whose names it takes
    ("distill", "--method"): "stillvec.learners:LEARNERS",
    ("distill", "--teacher"): "stillvec.teachers.loader:PACKAGED",
    ("train", "--method"): "stillvec.baselines:BASELINES",
    ("refine", "--step"): "stillvec.refinement:STEPS",
    ("combine", "--method"): "stillvec.combination:COMBINERS",
    ("evaluate", "--tasks"): "stillvec.evaluation:TASKS",
    ("analyze", "--tasks"): "stillvec.evaluation:TASKS",
    ("convert", "--format"): "stillvec.formats:FORMATS",
    ("convert", "--from"): "stillvec.formats:FORMATS",
}
SEVERAL = {("distill", "--method"), ("train", "--method"), ("evaluate", "--tasks"), ("analyze", "--tasks")}  # a,b
_NO_FILE = {
    "N",
    "K",
    "A-B",
    "NAME",
    "CHAR",
    "NAME=N",
    "PIPELINE",
    "HOST",
    "HOST:PORT",
    "A,B",
    "D,...",
    "A,B:key=value",
    "",
}


@dataclass(frozen=True)
class Option:
    """One option of a verb: how it is written, what it is for, what may stand behind it."""

    flags: tuple[str, ...]
    help: str
    takes: bool = True  # a value stands behind it
    names: tuple[str, ...] = ()  # values that are known
    files: bool = False  # a file or folder may stand there
    several: bool = False  # names with commas between them


@dataclass(frozen=True)
class Verb:
    """A verb with its options, and the names that may stand without one (else: files)."""

    name: str
    help: str
    options: tuple[Option, ...]
    names: tuple[str, ...] = ()


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that reads the script")
    parser.epilog = (
        'bash: eval "$(stillvec completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc, after compinit; '
        "fish: stillvec completion fish > ~/.config/fish/completions/stillvec.fish"
    )


def run(options: argparse.Namespace) -> int:
    from stillvec.cli import completion_scripts

    print(getattr(completion_scripts, options.shell)(known()), end="")
    return 0


def known() -> list[Verb]:
    """All verbs, from the cache where our files are as they were."""
    kept = cache_folder() / "completion" / f"{_state()}.json"
    try:
        found = json.loads(kept.read_bytes())
        return [Verb(**one | {"options": tuple(Option(**each) for each in one["options"])}) for one in found]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        verbs = [described(verb) for verb in VERBS]
        try:
            with atomic_file(kept) as part:
                part.write_text(json.dumps([*map(asdict, verbs)]), "utf-8")
        except OSError:  # a cache that cannot be written only costs time
            pass
        return verbs


def described(verb: str) -> Verb:
    """A verb as its parser says; one that cannot be imported here has its name only."""
    parser = argparse.ArgumentParser(prog=f"stillvec {verb}")
    try:
        importlib.import_module(f"stillvec.cli.{verb}").arguments(parser)
    except (ModuleNotFoundError, MissingExtra):
        return Verb(verb, VERBS[verb], ())
    actions = parser._actions
    names = [str(choice) for action in actions if not action.option_strings for choice in action.choices or ()]
    return Verb(verb, VERBS[verb], tuple(_option(verb, each) for each in actions if each.option_strings), tuple(names))


def _option(verb: str, action: argparse.Action) -> Option:
    flags, told = tuple(action.option_strings), _sentence(action)
    if action.nargs == 0:
        return Option(flags, told, takes=False)
    key = next((named for flag in flags if (named := (verb, flag)) in NAMED), (verb, flags[-1]))
    metavar = "" if action.metavar is None else str(action.metavar)
    parts = metavar.split("|")
    if action.choices is not None:
        return Option(flags, told, names=tuple(map(str, action.choices)))
    names = tuple(_names(NAMED[key]) if key in NAMED else filter(str.islower, parts if len(parts) > 1 else ()))
    files = key[1] == "--teacher" or (
        key not in NAMED and any(not part.islower() and part not in _NO_FILE for part in parts)
    )
    return Option(flags, told, names=names, files=files, several=key in SEVERAL)


def _sentence(action: argparse.Action) -> str:
    """The first part of an option's help, on one line."""
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%(const)s", str(action.const))
    return text.partition(";")[0].partition(" (default")[0]


def _names(place: str) -> list[str]:
    module, _, name = place.partition(":")
    return [*getattr(importlib.import_module(module), name)]


def _state() -> str:
    """Changes when a file of ours does, or when it lies elsewhere."""
    package = Path(__file__).parent.parent
    files = sorted(package.rglob("*.py"))
    return digest(f"{file} {(stat := file.stat()).st_mtime_ns} {stat.st_size}".encode() for file in files)
