"""Pages of reference, made when the site is built from what the program says of itself: they are never stale."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
from collections.abc import Iterator
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import stillvec
from stillvec.baselines import BASELINES
from stillvec.cli import VERBS, main
from stillvec.cli.list_action import described
from stillvec.combination import COMBINERS
from stillvec.evaluation import TASKS
from stillvec.formats import FORMATS
from stillvec.learners import LEARNERS
from stillvec.refinement import STEPS

PARTS = {  # title: what stands above the list, the registry
    "Methods that distil": ("`stillvec distill --method NAME[:key=value,...]`", LEARNERS),
    "Methods without a teacher": ("`stillvec train --method NAME[:key=value,...]`", BASELINES),
    "Steps": ("`stillvec refine --step NAME[:key=value,...]`", STEPS),
    "Ways to combine": ("`stillvec combine --method NAME[:key=value,...]`", COMBINERS),
    "Tasks": ("`stillvec evaluate --tasks NAME[:key=value,...]`", TASKS),
}


class _Plain(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, lines in {"cli": command_line(), "parts": parts(), "python": python()}.items():
        files.append(File.generated(config, f"reference/{name}.md", content="\n".join(lines) + "\n"))
    return files


def command_line() -> Iterator[str]:
    yield "# Command line\n\nWhat `stillvec VERB --help` prints. Exit codes: 0 done, 1 it failed and said why, 2 the"
    yield "call was wrong.\n"
    yield "VECTORS is a folder of ours or a file in any format that is read; CORPUS is files, folders, globs or `-`.\n"
    for verb, summary in VERBS.items():
        yield f"## {verb}\n\n{summary[0].upper()}{summary[1:]}.\n\n```text\n{_help(verb)}```\n"


def parts() -> Iterator[str]:
    yield "# Methods and settings\n"
    yield "Settings stand after a colon with what they are if nothing is said; those in brackets are not set, and"
    yield "those that end with `=` must be given. `settings=NAME` takes the settings of a paper, where there are any.\n"
    for title, (use, registry) in PARTS.items():
        yield f"## {title}\n\n{use}\n"
        for name in registry:
            call, _, about = described(name, registry[name]).partition("\n")
            presets = [f"`settings={preset}`" for preset in getattr(registry[name], "PRESETS", ())]
            yield f"### {name}\n\n{_escaped(about.strip())}\n\n```text\n{_wrapped(call)}\n```\n"
            yield f"Also: {', '.join(presets)}\n" if presets else ""
    yield "## Formats\n\n`stillvec convert VECTORS OUT --format NAME`; [formats](../formats.md) says what they are.\n"
    yield ", ".join(f"`{name}`" for name in FORMATS)


def python() -> Iterator[str]:
    yield "# Python\n\nThe public names of `import stillvec`. Everything else may change.\n"
    for name in sorted(stillvec.__all__, key=str.lower):
        thing = getattr(stillvec, name)
        yield f"## {name}\n\n{_signature(name, thing)}\n{_doc(thing)}\n"
        for inner, member in vars(thing).items() if inspect.isclass(thing) else ():
            if not inner.startswith("_") and _doc(member):
                yield f"### {name}.{inner}\n\n{_signature(f'{name}.{inner}', member)}\n{_doc(member)}\n"


def _help(verb: str) -> str:
    printed, width = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "88"
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([verb, "--help"])
    finally:
        os.environ.pop("COLUMNS") if width is None else os.environ.update(COLUMNS=width)
    return printed.getvalue()


def _signature(name: str, thing: Any) -> str:
    plain = getattr(thing, "__func__", getattr(thing, "func", thing))  # of a class method, of a cached property
    if isinstance(plain, property) or (plain is not thing and not isinstance(thing, classmethod | staticmethod)):
        return ""
    try:
        signature = inspect.signature(plain)
    except (TypeError, ValueError):
        return ""
    kept = [
        each.replace(annotation=_Plain(each.annotation)) if isinstance(each.annotation, str) else each
        for key, each in signature.parameters.items()
        if key not in ("self", "cls")
    ]
    gives = (
        "" if signature.return_annotation in ("None", inspect.Signature.empty) else f" -> {signature.return_annotation}"
    )
    text = f"{name}{signature.replace(parameters=kept, return_annotation=inspect.Signature.empty)}{gives}"
    return f"```python\n{_wrapped(text, ', ')}\n```\n"


def _wrapped(text: str, between: str = ",", width: int = 84) -> str:
    """Over several lines, each but the first indented, broken behind `between`."""
    lines = [""]
    for piece in re.split(f"(?<={between})", text):
        if len(lines[-1]) + len(piece) > width and lines[-1]:
            lines.append("    ")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _doc(thing: Any) -> str:
    """The docstring, its examples as code."""
    text = inspect.getdoc(thing) if not isinstance(thing, str | int | tuple) else None
    return re.sub(r"((?:^(?:>>>|\.\.\.) .*\n?(?:(?!>>>)\S.*\n?)*)+)", r"```python\n\1\n```\n", text or "", flags=re.M)


def _escaped(text: str) -> str:
    return re.sub(r"([<*_])(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\\1", text)
