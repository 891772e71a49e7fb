"""Completion scripts for bash, zsh and fish, written from the commands that `completion_command` describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stillvec.cli.completion_command import Command, Option

_BASH = """\
# bash completion of stillvec, made by: stillvec completion bash
_stillvec() {
    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} before="" names="" files=""
    local prev=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        names="%(commands)s --help --version"
    elif [[ $cur == -* ]]; then
        case $verb in
%(options)s
        esac
    else
        case "$verb $prev" in
%(values)s
        *) files=yes
            case $verb in
%(alone)s
            esac ;;
        esac
    fi
    if [[ $before == list ]]; then
        before=""
        [[ $cur == *,* ]] && before=${cur%%,*},
    fi
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$names" -- "${cur#"$before"}")
    if [[ $files ]]; then
        compopt -o filenames
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")
    fi
}
complete -F _stillvec stillvec
"""

_ZSH = """\
#compdef stillvec
# zsh completion of stillvec, made by: stillvec completion zsh
_stillvec() {
    local verb=$words[2] prev=$words[CURRENT-1] cur=$words[CURRENT]
    local -a verbs options
    if (( CURRENT == 2 )); then
        verbs=(
%(commands)s
        )
        _describe verb verbs
        return
    fi
    if [[ $cur == -* ]]; then
        case $verb in
%(options)s
        esac
        _describe -o option options
        return
    fi
    case "$verb $prev" in
%(values)s
    esac
    case $verb in
%(alone)s
    esac
    _files
}
if [[ $funcstack[1] == _stillvec ]]; then _stillvec "$@"; else compdef _stillvec stillvec; fi
"""


def bash(commands: Sequence[Command]) -> str:
    def value(option: Option) -> str:
        parts = [f'names="{" ".join(option.names)}"'] * bool(option.names)
        return "; ".join([*parts, *["before=list"] * option.is_list, *["files=yes"] * option.files]) or ":"

    return _BASH % {
        "commands": " ".join(command.name for command in commands),
        "options": "\n".join(f'        {command.name}) names="{" ".join(_flags(command))}" ;;' for command in commands),
        "values": "\n".join(_values(commands, value)),
        "alone": "\n".join(
            f'            {v.name}) files=""; names="{" ".join(v.names)}" ;;' for v in commands if v.names
        ),
    }


def zsh(commands: Sequence[Command]) -> str:
    def describe(name: str, summary: str) -> str:
        return _quote(f"{name}:{summary}" if summary else name)

    def value(option: Option) -> str:
        names = f"compadd -- {' '.join(option.names)}" if option.names else ""
        if option.is_list:
            names = f"_values -s , name {' '.join(option.names)}"
        return "; ".join(filter(None, [names, "_files" if option.files else "", "return"]))

    def options(command: Command) -> str:
        return " ".join(describe(flag, option.help) for option in command.options for flag in option.flags)

    return _ZSH % {
        "commands": "\n".join(f"            {describe(command.name, command.help)}" for command in commands),
        "options": "\n".join(f"        {command.name}) options=({options(command)}) ;;" for command in commands),
        "values": "\n".join(_values(commands, value)),
        "alone": "\n".join(f"    {v.name}) compadd -- {' '.join(v.names)}; return ;;" for v in commands if v.names),
    }


def fish(commands: Sequence[Command]) -> str:
    """One line per option; fish offers files by default."""
    lines = [
        "# fish completion of stillvec, made by: stillvec completion fish",
        "complete -c stillvec -f -n __fish_use_subcommand -l help",
    ]
    lines.append("complete -c stillvec -f -n __fish_use_subcommand -l version")
    for command in commands:
        lines.append(f"complete -c stillvec -f -n __fish_use_subcommand -a {command.name} -d {_quote(command.help)}")
        seen = f"complete -c stillvec -n '__fish_seen_subcommand_from {command.name}'"
        lines += [f"{seen} -f -a '{' '.join(command.names)}'"] * bool(command.names)
        for option in command.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            lines.append(f"{seen} {flags}{_fish_value(option)} -d {_quote(option.help)}")
    return "\n".join(lines) + "\n"


def _fish_value(option: Option) -> str:
    if not option.takes_value:
        return ""
    names = " ".join(option.names)
    values = f" -a '(__fish_append , {names})'" if option.is_list else f" -a '{names}'" if names else ""
    return (" -r -F" if option.files else " -x") + values


def _flags(command: Command) -> list[str]:
    return [flag for option in command.options for flag in option.flags]


def _values(commands: Sequence[Command], value: Callable[[Option], str]) -> Iterator[str]:
    """One case per option whose value is not just a file."""
    for command in commands:
        for option in command.options:
            if option.takes_value and (option.names or not option.files):
                places = "|".join(f'"{command.name} {flag}"' for flag in option.flags)
                yield f"        {places}) {value(option)} ;;"


def _quote(text: str) -> str:
    escaped = text.replace("'", "’")
    return f"'{escaped}'"
