"""What there is to complete, as a script of each shell; `completion` says what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stillvec.cli.completion_command import Option, Verb

_BASH = """\
# bash completion of stillvec, made by: stillvec completion bash
_stillvec() {
    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} before="" names="" files=""
    local prev=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        names="%(verbs)s --help --version"
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
%(verbs)s
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


def bash(verbs: Sequence[Verb]) -> str:
    def value(option: Option) -> str:
        parts = [f'names="{" ".join(option.names)}"'] * bool(option.names)
        return "; ".join([*parts, *["before=list"] * option.several, *["files=yes"] * option.files]) or ":"

    return _BASH % {
        "verbs": " ".join(verb.name for verb in verbs),
        "options": "\n".join(f'        {verb.name}) names="{" ".join(_flags(verb))}" ;;' for verb in verbs),
        "values": "\n".join(_values(verbs, value)),
        "alone": "\n".join(f'            {v.name}) files=""; names="{" ".join(v.names)}" ;;' for v in verbs if v.names),
    }


def zsh(verbs: Sequence[Verb]) -> str:
    def described(name: str, told: str) -> str:
        return _quoted(f"{name}:{told}" if told else name)

    def value(option: Option) -> str:
        names = f"compadd -- {' '.join(option.names)}" if option.names else ""
        if option.several:
            names = f"_values -s , name {' '.join(option.names)}"
        return "; ".join(filter(None, [names, "_files" if option.files else "", "return"]))

    def options(verb: Verb) -> str:
        return " ".join(described(flag, option.help) for option in verb.options for flag in option.flags)

    return _ZSH % {
        "verbs": "\n".join(f"            {described(verb.name, verb.help)}" for verb in verbs),
        "options": "\n".join(f"        {verb.name}) options=({options(verb)}) ;;" for verb in verbs),
        "values": "\n".join(_values(verbs, value)),
        "alone": "\n".join(f"    {v.name}) compadd -- {' '.join(v.names)}; return ;;" for v in verbs if v.names),
    }


def fish(verbs: Sequence[Verb]) -> str:
    """A line an option; files are what fish offers where nothing else is said."""
    lines = [
        "# fish completion of stillvec, made by: stillvec completion fish",
        "complete -c stillvec -f -n __fish_use_subcommand -l help",
    ]
    lines.append("complete -c stillvec -f -n __fish_use_subcommand -l version")
    for verb in verbs:
        lines.append(f"complete -c stillvec -f -n __fish_use_subcommand -a {verb.name} -d {_quoted(verb.help)}")
        seen = f"complete -c stillvec -n '__fish_seen_subcommand_from {verb.name}'"
        lines += [f"{seen} -f -a '{' '.join(verb.names)}'"] * bool(verb.names)
        for option in verb.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            lines.append(f"{seen} {flags}{_fish_value(option)} -d {_quoted(option.help)}")
    return "\n".join(lines) + "\n"


def _fish_value(option: Option) -> str:
    if not option.takes:
        return ""
    names = " ".join(option.names)
    given = f" -a '(__fish_append , {names})'" if option.several else f" -a '{names}'" if names else ""
    return (" -r -F" if option.files else " -x") + given


def _flags(verb: Verb) -> list[str]:
    return [flag for option in verb.options for flag in option.flags]


def _values(verbs: Sequence[Verb], value: Callable[[Option], str]) -> Iterator[str]:
    """A case of each option behind which something stands that is not just a file."""
    for verb in verbs:
        for option in verb.options:
            if option.takes and (option.names or not option.files):
                places = "|".join(f'"{verb.name} {flag}"' for flag in option.flags)
                yield f"        {places}) {value(option)} ;;"


def _quoted(text: str) -> str:
    escaped = text.replace("'", "’")
    return f"'{escaped}'"
