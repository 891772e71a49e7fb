"""An earlier result to which a new corpus is added: its words, its statistics, and whether they fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.errors import FormatError, UsageError
from stillvec.formats import load, read_manifest, read_statistics
from stillvec.learners import LEARNERS, Learner
from stillvec.pipeline.manifest import describe_learner, describe_teacher
from stillvec.registry import settings_from
from stillvec.statistics import Statistics, merge
from stillvec.teachers import Teacher
from stillvec.teachers.digest import same_teacher
from stillvec.vocabulary import Vocabulary

_NEEDED = {"method": str} | dict.fromkeys(("settings", "distillation", "teacher", "corpus", "read"), dict)


class PreviousResult:
    """A folder with statistics."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: dict[str, Any] = read_manifest(path)
        self.vocabulary: Vocabulary = load(path, format="stillvec").vocabulary
        arrays = read_statistics(path)
        lacking = next((key for key, kind in _NEEDED.items() if not isinstance(self.manifest.get(key), kind)), None)
        if lacking is not None:
            raise FormatError(
                f"The manifest of {path} has no {lacking!r}; only what was distilled is merged or added to."
            )
        labels = sorted({name.partition("/")[0] for name in arrays})
        self.parts = {
            label: Statistics(
                self.vocabulary,
                {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(label + "/")},
            )
            for label in labels
        }

    def learner(self) -> Learner:
        """The method it was made with, settings and all."""
        kind = LEARNERS[self.manifest["method"]]
        return settings_from(kind, self.manifest["settings"], str(self.path))

    def check(self, teacher: Teacher, learners: Mapping[str, Learner]) -> None:
        """Only the same method, settings and teacher add up."""
        if len(learners) != 1:
            raise UsageError(f"One method can be added to {self.path}, and {len(learners)} were asked for.")
        (learner,) = learners.values()
        mine, theirs = describe_learner(learner), describe_learner(self.learner())
        if mine["method"] == theirs["method"]:
            mine, theirs = mine["settings"], theirs["settings"]
        odd = next((key for key in mine if mine[key] != theirs[key]), None)
        if odd is not None:
            raise UsageError(
                f"{self.path} was made with {odd} {theirs[odd]!r}, and {mine[odd]!r} is asked for; "
                "only like adds to like."
            )
        if not same_teacher(self.manifest["teacher"], describe_teacher(teacher)):
            raise UsageError(
                f"{self.path} was made with the teacher {self.manifest['teacher']['name']}, which is not "
                f"{teacher.name}; statistics of different teachers do not add up."
            )

    def describe(self) -> dict[str, Any]:
        """For the manifest of the result that this one is added to."""
        return {"name": self.path.name, **{key: self.manifest.get(key) for key in ("corpus", "read", "added_to")}}

    def merge(self, statistics: Mapping[str, Statistics]) -> dict[str, Statistics]:
        """Old and new statistics on the new vocabulary, which contains the old one."""
        with of_whole_results(self.path):
            return {label: merge(self.parts[label], new, new.vocabulary) for label, new in statistics.items()}


@contextmanager
def of_whole_results(*paths: Path) -> Iterator[None]:
    """Sums and facts that do not fit each other, as a damaged folder has them, are told as such."""
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused when it is written
            yield
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        names = " or ".join(map(str, paths))
        raise FormatError(
            f"The manifest or the statistics of {names} are damaged ({error!r}); make it anew."
        ) from error
