"""Generates the reference pages when the site is built, from help texts, registries and docstrings."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import io
import os
import re
import textwrap
import tomllib
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import stillvec
import stillvec.verbs.transformation  # registers the combiners that train
from stillvec.adaptation import ADAPTATIONS
from stillvec.baselines import BASELINES
from stillvec.cli import VERBS, main
from stillvec.combination import COMBINERS
from stillvec.evaluation import TASKS
from stillvec.formats import FORMATS
from stillvec.learners import LEARNERS
from stillvec.refinement import STEPS
from stillvec.registry import Registry

PARTS: dict[str, tuple[str, str, Registry[Any]]] = {  # title: section of settings.toml, usage, registry
    "Methods that distil a teacher": ("learner", "`stillvec distill --method NAME[:key=value,...]`", LEARNERS),
    "Steps that change a teacher": ("adaptation", "`stillvec adapt --step NAME[:key=value,...]`", ADAPTATIONS),
    "Methods without a teacher": ("baseline", "`stillvec train --method NAME[:key=value,...]`", BASELINES),
    "Steps": ("step", "`stillvec refine --step NAME[:key=value,...]`", STEPS),
    "Combination methods": ("combiner", "`stillvec combine --method NAME[:key=value,...]`", COMBINERS),
    "Tasks": ("task", "`stillvec evaluate --tasks NAME[:key=value,...]`", TASKS),
}
MEANINGS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("settings.toml").read_text("utf-8"))


class _Unquoted(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = {"cli": command_line_page(), "parts": settings_page(), "python": python_page()}
    for name, lines in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content="\n".join(lines) + "\n"))
    return files


def command_line_page() -> Iterator[str]:
    yield "# Command line\n\nThe output of `stillvec VERB --help`. Exit codes: 0 success, 1 failure with a message, 2"
    yield "wrong usage, 130 interrupted.\n"
    yield "VECTORS is a stillvec folder or a file in any supported format; CORPUS is files, folders, globs or `-`.\n"
    for verb, summary in VERBS.items():
        yield f"## {verb}\n\n{summary[0].upper()}{summary[1:]}.\n\n```text\n{_help(verb)}```\n"


def settings_page() -> Iterator[str]:
    yield "# Methods and settings\n"
    yield "Settings follow a colon: `aggregate:layer=3-6,contexts=max`. `settings=NAME` selects the settings of a"
    yield "paper, where there are any. [Teachers and methods](../methods.md) gives an overview.\n"
    for title, (kind, usage, registry) in PARTS.items():
        yield f"## {title}\n\n{usage}\n"
        for name in registry:
            part = registry[name]
            about = (inspect.getdoc(inspect.getmodule(part)) or "").partition("\n")[0]
            presets = [f"`settings={preset}`" for preset in getattr(part, "PRESETS", ())]
            yield f"### {name}\n\n{_escape(about)}\n"
            yield f"Presets: {', '.join(presets)}\n" if presets else ""
            yield from _settings_table(kind, name, part)
    yield "## Formats\n\n`stillvec convert VECTORS OUT --format NAME`, see [formats](../formats.md).\n"
    yield ", ".join(f"`{name}`" for name in FORMATS)


def python_page() -> Iterator[str]:
    yield "# Python reference\n\nThe public names of `import stillvec`. Everything else may change.\n"
    for name in sorted(stillvec.__all__, key=str.lower):
        public = getattr(stillvec, name)
        yield f"## {name}\n\n{_signature(name, public)}\n{_doc(public)}\n"
        for inner, member in public_members(public).items():
            if _doc(member):
                yield f"### {name}.{inner}\n\n{_signature(f'{name}.{inner}', member)}\n{_doc(member)}\n"


def public_members(public: Any) -> dict[str, Any]:
    """The public members of a class, its own and those of its bases in stillvec, in this order."""
    bases = (
        [base for base in public.__mro__ if base.__module__.startswith("stillvec.")] if inspect.isclass(public) else []
    )
    members = {name: member for base in reversed(bases) for name, member in vars(base).items() if name[0] != "_"}
    return dict(sorted(members.items())) if len(bases) > 1 else members


def settings_of(kind: str, name: str, part: type[Any]) -> dict[str, tuple[str, str]]:
    """The default and the meaning of every setting of a method, step, combiner or task."""
    comments = {field: comment for field, comment in _field_comments(part).items() if comment}
    meanings = {**MEANINGS["any"], **comments, **MEANINGS.get(kind, {}).get(name, {})}
    fields = [field for field in dataclasses.fields(part) if field.init]
    return {field.name: (_default(field), meanings.get(field.name, "")) for field in fields}


def example_of(part: type[Any], setting: str) -> str:
    """A value of a setting as it is written: the default, or one of its type if there is none."""
    field = next(field for field in dataclasses.fields(part) if field.name == setting)
    if field.default not in (None, (), dataclasses.MISSING):
        value = field.default[0] if isinstance(field.default, tuple) else field.default
        return str(value).lower() if isinstance(value, bool) else str(value)
    hint = str(typing.get_type_hints(part)[setting])
    choices = re.search(r"Literal\[['\"](\w+)", hint)
    kinds = {"bool": "true", "int": "100", "float": "0.5"}
    return choices[1] if choices else next((value for kind, value in kinds.items() if kind in hint), "FILE")


def _settings_table(kind: str, name: str, part: type[Any]) -> Iterator[str]:
    settings = settings_of(kind, name, part)
    if settings:
        yield "| setting | default | meaning | example |\n|---|---|---|---|"
        for setting, (default, meaning) in settings.items():
            example = f"`{name}:{setting}={example_of(part, setting)}`"
            yield f"| `{setting}` | {default} | {meaning.replace('|', chr(92) + '|')} | {example} |"
        yield ""


def _field_comments(part: type[Any]) -> dict[str, str]:
    """The comments behind the fields of a dataclass and its bases."""
    comments: dict[str, str] = {}
    for base in reversed(part.__mro__):
        if "__dataclass_fields__" not in vars(base):
            continue
        source = textwrap.dedent(inspect.getsource(base))
        lines = source.splitlines()
        for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                span = lines[node.lineno - 1 : node.end_lineno]
                comments[node.target.id] = " ".join(line.partition("  # ")[2] for line in span).strip()
    return comments


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return "required" if field.default_factory is dataclasses.MISSING else ""
    if field.default in (None, ()):
        return ""
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    if isinstance(field.default, tuple):
        return ", ".join(f"`{value}`" for value in field.default)
    return f"`{field.default:.4g}`" if isinstance(field.default, float) else f"`{field.default}`"


def _help(verb: str) -> str:
    printed, width = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "88"
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([verb, "--help"])
    finally:
        os.environ.pop("COLUMNS") if width is None else os.environ.update(COLUMNS=width)
    return printed.getvalue()


def _signature(name: str, public: Any) -> str:
    function = getattr(public, "__func__", getattr(public, "func", public))  # class methods, cached properties
    is_method = isinstance(public, classmethod | staticmethod)
    if isinstance(function, property) or (function is not public and not is_method):
        return ""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    parameters = [
        parameter.replace(annotation=_Unquoted(parameter.annotation))
        if isinstance(parameter.annotation, str)
        else parameter
        for key, parameter in signature.parameters.items()
        if key not in ("self", "cls")
    ]
    nothing = signature.return_annotation in ("None", inspect.Signature.empty)
    returns = "" if nothing else f" -> {signature.return_annotation}"
    text = f"{name}{signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)}{returns}"
    return f"```python\n{_wrap(text, ', ')}\n```\n"


def _wrap(text: str, separator: str = ",", width: int = 84) -> str:
    """Break behind `separator`; all lines but the first are indented."""
    lines = [""]
    for piece in re.split(f"(?<={separator})", text):
        if len(lines[-1]) + len(piece) > width and lines[-1]:
            lines.append("    ")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _doc(public: Any) -> str:
    """The docstring, with examples as code and its sections as lists."""
    text = inspect.getdoc(public) if not isinstance(public, str | int | tuple) else None
    text = (text or "").replace("  # doctest: +SKIP", "")
    text = re.sub(r"((?:^(?:>>>|\.\.\.) .*\n?(?:(?!>>>)\S.*\n?)*)+)", r"```python\n\1\n```\n", text, flags=re.M)
    return _list_parameters(text)


def _list_parameters(text: str) -> str:
    """Turn the sections of a docstring, `Parameters` underlined with dashes, into Markdown lists."""

    def convert(section: re.Match[str]) -> str:
        items = re.sub(r"\n[ \t]+", " ", section[2]).strip().splitlines()
        listed = [re.sub(r"^([*\w]+(?:, [*\w]+)*) ?:", r"- `\1`:", item) for item in items]
        return f"**{section[1]}**\n\n" + "\n".join(listed) + "\n\n"

    return re.sub(r"^(\w+)\n-{3,}\n((?:.+\n?)+)", convert, text, flags=re.M)


def _escape(text: str) -> str:
    return re.sub(r"([<*_])(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\\1", text)
