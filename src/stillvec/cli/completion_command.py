"""stillvec completion SHELL: a script with which bash, zsh or fish completes commands, options, names and files.

The parsers of all commands are read for it, which takes a second. The result is cached until one of our files changes,
so that a line in a shell's start-up file costs next to nothing.
"""

import argparse
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from stillvec.cli import VERBS
from stillvec.errors import MissingExtra
from stillvec.files import atomic_file, cache_folder, digest

REGISTRIES = {  # (command, option): the registry whose names it takes
    ("distill", "--method"): "stillvec.learners:LEARNERS",
    ("adapt", "--step"): "stillvec.adaptation:ADAPTATIONS",
    ("distill", "--teacher"): "stillvec.teachers:PACKAGED",
    ("train", "--method"): "stillvec.baselines:BASELINES",
    ("refine", "--step"): "stillvec.refinement:STEPS",
    ("combine", "--method"): "stillvec.verbs.transformation:COMBINERS",
    ("evaluate", "--tasks"): "stillvec.evaluation:TASKS",
    ("analyze", "--tasks"): "stillvec.evaluation:TASKS",
    ("convert", "--format"): "stillvec.formats:FORMATS",
    ("convert", "--from"): "stillvec.formats:FORMATS",
}
# options that take a comma-separated list
LISTS = {("distill", "--method"), ("train", "--method"), ("evaluate", "--tasks"), ("analyze", "--tasks")}
_NOT_FILES = {"", "N", "K", "A-B", "NAME", "CHAR", "NAME=N", "PIPELINE", "HOST", "HOST:PORT"}  # metavars
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
    parser.add_argument("shell", choices=[*SCRIPTS], help="the shell that reads the script")
    parser.epilog = (
        'bash: eval "$(stillvec completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc, after compinit; '
        "fish: stillvec completion fish > ~/.config/fish/completions/stillvec.fish"
    )


def run(options: argparse.Namespace) -> int:
    print(SCRIPTS[options.shell](load_commands()), end="")
    return 0


def load_commands() -> list[Command]:
    """All commands, from the cache if our files have not changed."""
    sources = sorted(Path(__file__).parent.parent.rglob("*.py"))
    states = (f"{file} {(stat := file.stat()).st_mtime_ns} {stat.st_size}".encode() for file in sources)
    cached = cache_folder() / "completion" / f"{digest(states)}.json"
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
    flags, text = tuple(action.option_strings), action.help or ""
    text = text.replace("%(default)s", str(action.default)).replace("%(const)s", str(action.const))
    summary = text.partition(";")[0].partition(" (default")[0]
    if action.nargs == 0:
        return Option(flags, summary, takes_value=False)
    if action.choices is not None:
        return Option(flags, summary, names=tuple(map(str, action.choices)))
    for key in ((command, flag) for flag in flags):
        if key in REGISTRIES:
            module, _, name = REGISTRIES[key].partition(":")
            known = tuple(getattr(importlib.import_module(module), name))
            return Option(flags, summary, names=known, files=key[1] == "--teacher", is_list=key in LISTS)
    parts = ("" if action.metavar is None else str(action.metavar)).split("|")
    names = tuple(part for part in parts if part.islower()) if len(parts) > 1 else ()
    return Option(flags, summary, names=names, files=any(not p.islower() and p not in _NOT_FILES for p in parts))


def write_bash(commands: Sequence[Command]) -> str:
    def value(option: Option) -> str:
        parts = [f'names="{" ".join(option.names)}"'] * bool(option.names)
        return "; ".join([*parts, *["before=list"] * option.is_list, *["files=yes"] * option.files]) or ":"

    return _template("bash") % {
        "commands": " ".join(command.name for command in commands),
        "options": _cases(commands, lambda c: f'names="{" ".join(flag for o in c.options for flag in o.flags)}"'),
        "values": _value_cases(commands, value),
        "alone": _cases(commands, lambda c: f'files=""; names="{" ".join(c.names)}"' if c.names else "", 12),
    }


def write_zsh(commands: Sequence[Command]) -> str:
    def describe(name: str, summary: str) -> str:
        return _quote(f"{name}:{summary}" if summary else name)

    def value(option: Option) -> str:
        names = f"compadd -- {' '.join(option.names)}" if option.names else ""
        if option.is_list:
            names = f"_values -s , name {' '.join(option.names)}"
        return "; ".join(filter(None, [names, "_files" if option.files else "", "return"]))

    def options(command: Command) -> str:
        described = (describe(flag, option.help) for option in command.options for flag in option.flags)
        return f"options=({' '.join(described)})"

    return _template("zsh") % {
        "commands": "\n".join(f"            {describe(command.name, command.help)}" for command in commands),
        "options": _cases(commands, options),
        "values": _value_cases(commands, value),
        "alone": _cases(commands, lambda c: f"compadd -- {' '.join(c.names)}; return" if c.names else "", 4),
    }


def write_fish(commands: Sequence[Command]) -> str:
    """One line per option; fish offers files by default."""
    top = "complete -c stillvec -f -n __fish_use_subcommand"
    lines = ["# fish completion of stillvec, made by: stillvec completion fish", f"{top} -l help", f"{top} -l version"]
    for command in commands:
        lines.append(f"{top} -a {command.name} -d {_quote(command.help)}")
        seen = f"complete -c stillvec -n '__fish_seen_subcommand_from {command.name}'"
        lines += [f"{seen} -f -a '{' '.join(command.names)}'"] * bool(command.names)
        for option in command.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            names = " ".join(option.names)
            values = f" -a '(__fish_append , {names})'" if option.is_list else f" -a '{names}'" if names else ""
            taken = (" -r -F" if option.files else " -x") + values if option.takes_value else ""
            lines.append(f"{seen} {flags}{taken} -d {_quote(option.help)}")
    return "\n".join(lines) + "\n"


SCRIPTS = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}


def _template(shell: str) -> str:
    return Path(__file__).with_name(f"completion.{shell}").read_text("utf-8")


def _cases(commands: Sequence[Command], describe: Callable[[Command], str], indent: int = 8) -> str:
    """One case of a shell's `case` per command that has a description."""
    cases = {command.name: describe(command) for command in commands}
    return "\n".join(f"{' ' * indent}{name}) {text} ;;" for name, text in cases.items() if text)


def _value_cases(commands: Sequence[Command], value: Callable[[Option], str]) -> str:
    """One case per option whose value is not just a file."""
    pairs = [(command.name, option) for command in commands for option in command.options if option.takes_value]
    cases = {
        "|".join(f'"{command} {flag}"' for flag in option.flags): value(option)
        for command, option in pairs
        if option.names or not option.files
    }
    return "\n".join(f"        {places}) {text} ;;" for places, text in cases.items())


def _quote(text: str) -> str:
    return "'" + text.replace("'", "’") + "'"
