"""stillvec completion SHELL: a script with which bash, zsh or fish completes commands, options, names and files.

The parsers of all commands are read for it, which imports torch and takes seconds. The result is cached until one of
our files changes, so that a line in a shell's start-up file costs next to nothing.
"""

import argparse
import importlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from stillvec.cli import VERBS
from stillvec.errors import MissingExtra
from stillvec.files import atomic_file, cache_folder, digest

REGISTRIES = {  # (command, option): the registry whose names it takes
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
# options that take a comma-separated list
LISTS = {("distill", "--method"), ("train", "--method"), ("evaluate", "--tasks"), ("analyze", "--tasks")}
_NOT_FILES = {"", "N", "K", "A-B", "NAME", "CHAR", "NAME=N", "PIPELINE", "HOST", "HOST:PORT"}
_NOT_FILES |= {"A,B", "D,...", "A,B:key=value"}


@dataclass(frozen=True)
class Option:
    """One option of a command and the values it takes."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool = True
    names: tuple[str, ...] = ()  # known values
    files: bool = False  # the value may be a file or folder
    is_list: bool = False  # names separated by commas


@dataclass(frozen=True)
class Command:
    """A command with its options, and the names its positional arguments take (none: files)."""

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

    print(getattr(completion_scripts, options.shell)(load_commands()), end="")
    return 0


def load_commands() -> list[Command]:
    """All commands, from the cache if our files have not changed."""
    cached = cache_folder() / "completion" / f"{_source_digest()}.json"
    try:
        entries = json.loads(cached.read_bytes())
        return [Command(**entry | {"options": tuple(Option(**o) for o in entry["options"])}) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        commands = [describe_command(name) for name in VERBS]
        try:
            with atomic_file(cached) as part:
                part.write_text(json.dumps([*map(asdict, commands)]), "utf-8")
        except OSError:  # a cache that cannot be written only costs time
            pass
        return commands


def describe_command(name: str) -> Command:
    """Read a command's parser; a command that cannot be imported is completed by its name only."""
    parser = argparse.ArgumentParser(prog=f"stillvec {name}")
    try:
        importlib.import_module(f"stillvec.cli.{name}_command").arguments(parser)
    except (ModuleNotFoundError, MissingExtra):
        return Command(name, VERBS[name], ())
    actions = visible_actions(parser)
    names = [str(choice) for action in actions if not action.option_strings for choice in action.choices or ()]
    options = tuple(_option(name, action) for action in actions if action.option_strings)
    return Command(name, VERBS[name], options, tuple(names))


def visible_actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options and arguments that the help shows.

    `_actions` is private, and argparse has no public counterpart; it is the same from Python 3.2 to 3.14.
    """
    return [action for action in parser._actions if action.help is not argparse.SUPPRESS]


def _option(command: str, action: argparse.Action) -> Option:
    flags, summary = tuple(action.option_strings), _summary(action)
    if action.nargs == 0:
        return Option(flags, summary, takes_value=False)
    if action.choices is not None:
        return Option(flags, summary, names=tuple(map(str, action.choices)))
    key = next((key for flag in flags if (key := (command, flag)) in REGISTRIES), (command, flags[-1]))
    parts = ("" if action.metavar is None else str(action.metavar)).split("|")
    if key in REGISTRIES:
        names = _registry_names(REGISTRIES[key])
        return Option(flags, summary, names=names, files=key[1] == "--teacher", is_list=key in LISTS)
    names = tuple(part for part in parts if part.islower()) if len(parts) > 1 else ()
    files = any(not part.islower() and part not in _NOT_FILES for part in parts)
    return Option(flags, summary, names=names, files=files)


def _summary(action: argparse.Action) -> str:
    """The first part of an option's help, on one line."""
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%(const)s", str(action.const))
    return text.partition(";")[0].partition(" (default")[0]


def _registry_names(path: str) -> tuple[str, ...]:
    """The names in a registry; none if what it needs (torch) is not installed."""
    module, _, name = path.partition(":")
    try:
        return tuple(getattr(importlib.import_module(module), name))
    except (ModuleNotFoundError, MissingExtra):
        return ()


def _source_digest() -> str:
    """Changes when one of our files does, or when the package is elsewhere."""
    package = Path(__file__).parent.parent
    files = sorted(package.rglob("*.py"))
    return digest(f"{file} {(stat := file.stat()).st_mtime_ns} {stat.st_size}".encode() for file in files)
