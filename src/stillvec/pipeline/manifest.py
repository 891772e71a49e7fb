"""The parts of a manifest: method, teacher and program."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import platform
from typing import TYPE_CHECKING, Any

from stillvec import __version__
from stillvec.learners import LEARNERS

if TYPE_CHECKING:
    from stillvec.learners import Learner
    from stillvec.teachers import Teacher

LIBRARIES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "safetensors")


def describe_learner(learner: Learner) -> dict[str, Any]:
    name = next(name for name in LEARNERS if LEARNERS[name] is type(learner))
    return {"method": name, "settings": dataclasses.asdict(learner)}  # type: ignore[call-overload]


def describe_teacher(teacher: Teacher) -> dict[str, Any]:
    names = ("name", "digest", "sampled_digest", "dim", "depth", "window", "precision")
    return {name: getattr(teacher, name) for name in names} | {"device": teacher.device.type}


def describe_program() -> dict[str, Any]:
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:  # not installed, or without metadata
            versions[name] = "unknown"
    return {
        "stillvec": __version__,
        "python": platform.python_version(),
        "libraries": versions,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
