"""A run in a TOML file: what is distilled or trained, from what, and how it is judged.

[distill]
corpus = ["texts/*.txt"]
teacher = "minilm"
method = "auto,aggregate"
out = "vectors"

[train]
corpus = ["texts/*.txt"]
method = "skipgram,glove"
out = "baselines"

[evaluate]
data = "data"
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from stillvec.errors import UsageError, suggest
from stillvec.lexicons import read_words
from stillvec.pipeline.settings import Distillation
from stillvec.pipeline.training_run import Training
from stillvec.registry import settings_from

_SECTIONS = ("distill", "train", "evaluate")
_EVALUATE = ("data", "tasks", "json")


@dataclass(frozen=True)
class _TrainPlaces:
    """Where things are, not how they are made."""

    out: str
    corpus: tuple[str, ...] = ()
    field: str | None = None


@dataclass(frozen=True)
class _Places(_TrainPlaces):
    add_to: str | None = None
    statistics: bool = True


Settings = TypeVar("Settings", Distillation, Training)


@dataclass(frozen=True)
class Section(Generic[Settings]):
    """One run of a recipe."""

    settings: Settings
    corpus: tuple[str, ...]
    out: str
    field: str | None = None
    add_to: str | None = None
    statistics: bool = True


@dataclass(frozen=True)
class Recipe:
    """What is distilled, then what is trained, then how all of it is judged."""

    distill: Section[Distillation] | None = None
    train: Section[Training] | None = None
    evaluate: dict[str, Any] | None = None


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Paths in a recipe are relative to the folder one stands in; environment variables are filled in."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"There is no recipe {path}.") from None
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, a number of thousands of digits, too deep
        raise UsageError(f"The recipe {path} is not TOML: {error}.") from None
    _check_keys(content, _SECTIONS, f"{path}")
    if not {"distill", "train"} & content.keys():
        raise UsageError(f'A recipe has a section [distill] or [train] with at least out = "FOLDER"; {path} has none.')
    recipe = Recipe(
        _section(content["distill"], Distillation, _Places, f"[distill] of {path}") if "distill" in content else None,
        _section(content["train"], Training, _TrainPlaces, f"[train] of {path}") if "train" in content else None,
        _evaluate(content.get("evaluate"), path),
    )
    if recipe.distill and recipe.train and Path(recipe.distill.out).absolute() == Path(recipe.train.out).absolute():
        raise UsageError(f"[distill] and [train] of {path} both write {recipe.train.out}; give each its own folder.")
    if recipe.train and not recipe.train.corpus:
        raise UsageError(f'[train] of {path} has no corpus = ["FILE", ...], and without a teacher one is needed.')
    return recipe


def _section(section: Any, kind: type[Settings], places: type[_TrainPlaces], where: str) -> Section[Settings]:
    if not isinstance(section, dict) or "out" not in section:
        raise UsageError(f'A section {where} with at least out = "FOLDER" was wanted, and it has none.')
    given = {key.replace("-", "_"): _filled(value) for key, value in section.items()}
    known = {field.name for field in fields(places)}
    place = settings_from(places, {key: value for key, value in given.items() if key in known}, where)
    values = {key: value for key, value in given.items() if key not in known}
    if values.get("contexts") == "all":
        values["contexts"] = None
    if isinstance(kept := values.get("keep"), str):  # a file, or else the words themselves
        values["keep"] = read_words(kept)
    return Section(settings_from(kind, values, where), **vars(place))


def _evaluate(section: Any, path: str | os.PathLike[str]) -> dict[str, Any] | None:
    if section is None:
        return None
    if not isinstance(section, dict):
        raise UsageError(f"In {path}, [evaluate] is a section, and {section!r} came.")
    _check_keys(section, _EVALUATE, f"[evaluate] of {path}")
    return {key: _filled(value) for key, value in section.items()}


def _filled(value: Any) -> Any:
    if isinstance(value, list):
        return [_filled(each) for each in value]
    if not isinstance(value, str):
        return value
    filled = os.path.expandvars(value)
    missing = re.search(r"\$\{?(\w+)", filled)
    if missing:
        raise UsageError(f"A recipe names ${missing[1]}, which the environment does not have; set it first.")
    return filled


def _check_keys(given: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{where} has {key!r}, which is not known; {suggest(key, known)}")
