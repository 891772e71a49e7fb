"""A run in a TOML file: what is distilled, from what, and how it is judged.

[distill]
corpus = ["texts/*.txt"]
teacher = "minilm"
method = "auto,aggregate"
out = "vectors"

[evaluate]
data = "data"
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from stillvec.corpus import read_words
from stillvec.errors import CallError
from stillvec.pipeline.settings import Distillation
from stillvec.registry import nearest_known, settings_from

_SECTIONS = ("distill", "evaluate")
_EVALUATE = ("data", "tasks", "json")


@dataclass(frozen=True)
class _Places:
    """Where things are, not how they are made."""

    out: str
    corpus: tuple[str, ...] = ()
    field: str | None = None
    add_to: str | None = None
    statistics: bool = True


@dataclass(frozen=True)
class Recipe:
    settings: Distillation
    corpus: tuple[str, ...]
    out: str
    field: str | None = None
    add_to: str | None = None
    statistics: bool = True
    evaluate: dict[str, Any] | None = None


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Paths in a recipe are relative to the folder one stands in; environment variables are filled in."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CallError(f"There is no recipe {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CallError(f"The recipe {path} is not TOML: {error}.") from None
    _check_keys(content, _SECTIONS, f"{path}")
    section = content.get("distill")
    if not isinstance(section, dict) or "out" not in section:
        raise CallError(f'A recipe has a section [distill] with at least out = "FOLDER", and {path} has none.')
    given = {key.replace("-", "_"): _filled(value) for key, value in section.items()}
    known = {field.name for field in fields(_Places)}
    where = f"[distill] of {path}"
    places = settings_from(_Places, {key: value for key, value in given.items() if key in known}, where)
    values = {key: value for key, value in given.items() if key not in known}
    if values.get("contexts") == "all":
        values["contexts"] = None
    if isinstance(kept := values.get("keep"), str):  # a file, or else the words themselves
        values["keep"] = read_words(kept)
    evaluate = content.get("evaluate")
    if evaluate is not None:
        if not isinstance(evaluate, dict):
            raise CallError(f"In {path}, [evaluate] is a section, and {evaluate!r} came.")
        _check_keys(evaluate, _EVALUATE, f"[evaluate] of {path}")
        evaluate = {key: _filled(value) for key, value in evaluate.items()}
    settings = settings_from(Distillation, values, where)
    return Recipe(settings, places.corpus, places.out, places.field, places.add_to, places.statistics, evaluate)


def _filled(value: Any) -> Any:
    if isinstance(value, list):
        return [_filled(each) for each in value]
    if not isinstance(value, str):
        return value
    filled = os.path.expandvars(value)
    missing = re.search(r"\$\{?(\w+)", filled)
    if missing:
        raise CallError(f"A recipe names ${missing[1]}, which the environment does not have; set it first.")
    return filled


def _check_keys(given: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in known:
            raise CallError(f"{where} has {key!r}, which is not known; {nearest_known(key, known)}")
