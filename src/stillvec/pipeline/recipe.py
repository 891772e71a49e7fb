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
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stillvec.corpus import read_words
from stillvec.errors import CallError
from stillvec.pipeline.settings import Distillation
from stillvec.registry import nearest_known, settings_from

_SECTIONS = ("distill", "evaluate")
_PLACES = ("corpus", "out", "field", "add_to", "keep")  # where things are, not how they are made
_EVALUATE = ("data", "tasks", "json")


@dataclass(frozen=True)
class Recipe:
    settings: Distillation
    corpus: tuple[str, ...]
    out: str
    field: str | None = None
    add_to: str | None = None
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
    places = {key: _filled(section[key]) for key in _PLACES if key in section}
    values = {key: _filled(value) for key, value in section.items() if key not in _PLACES}
    if values.get("contexts") == "all":
        values["contexts"] = None
    if "keep" in places:
        values["keep"] = tuple(read_words(places["keep"]))
    evaluate = content.get("evaluate")
    if evaluate is not None:
        _check_keys(evaluate, _EVALUATE, f"[evaluate] of {path}")
        evaluate = {key: _filled(value) for key, value in evaluate.items()}
    corpus = places.get("corpus", [])
    return Recipe(
        settings_from(Distillation, values, f"[distill] of {path}"),
        tuple([corpus] if isinstance(corpus, str) else corpus),
        places["out"],
        places.get("field"),
        places.get("add_to"),
        evaluate,
    )


def _filled(value: Any) -> Any:
    if isinstance(value, list):
        return [_filled(each) for each in value]
    if not isinstance(value, str):
        return value
    filled = os.path.expandvars(value)
    if "$" in filled and filled != value.replace("$$", "$") and "$" in value:
        missing = next(word for word in filled.split("/") if "$" in word)
        raise CallError(f"A recipe names {missing}, which the environment does not have; set it first.")
    return filled


def _check_keys(given: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in known:
            raise CallError(f"{where} has {key!r}, which is not known; {nearest_known(key, known)}")
