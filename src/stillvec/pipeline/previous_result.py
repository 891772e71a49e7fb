"""Earlier results: one to which a new corpus is added, or several that are merged by adding their statistics."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stillvec.errors import FormatError, UsageError, is_out_of_memory
from stillvec.formats import load, read_manifest, read_statistics
from stillvec.learners import LEARNERS, Learner
from stillvec.pipeline.result_folders import describe_learner, describe_result, describe_teacher
from stillvec.pipeline.settings import from_manifest
from stillvec.registry import settings_from
from stillvec.result import Result
from stillvec.statistics import Statistics, merge
from stillvec.teachers.digest import same_teacher
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from stillvec.teachers import Teacher

_NEEDED = {"method": str} | dict.fromkeys(("settings", "distillation", "teacher", "corpus", "read"), dict)


class PreviousResult:
    """A folder with statistics."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: dict[str, Any] = read_manifest(path)
        self.vocabulary: Vocabulary = load(path, format="stillvec").vocabulary
        arrays = read_statistics(path)
        missing = next((key for key, kind in _NEEDED.items() if not isinstance(self.manifest.get(key), kind)), None)
        if missing is not None:
            raise FormatError(
                f"The manifest of {path} has no {missing!r}; only distilled results can be merged or added to.",
                path=path,
            )
        labels = sorted({name.partition("/")[0] for name in arrays})
        self.statistics = {
            label: Statistics(
                self.vocabulary,
                {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(label + "/")},
            )
            for label in labels
        }

    def learner(self) -> Learner:
        """The method it was made with, with its settings."""
        kind = LEARNERS[self.manifest["method"]]
        return settings_from(kind, self.manifest["settings"], str(self.path))

    def check(self, teacher: Teacher, learners: Mapping[str, Learner]) -> None:
        """Raise an error unless method, settings and teacher are the same."""
        if len(learners) != 1:
            raise UsageError.expected("one method", f"{len(learners)}", where=f"--add-to {self.path}")
        (learner,) = learners.values()
        new, old = describe_learner(learner), describe_learner(self.learner())
        if new["method"] == old["method"]:
            new, old = new["settings"], old["settings"]
        changed = next((key for key in new if new[key] != old[key]), None)
        if changed is not None:
            what = f"{changed} {old[changed]!r}, with which {self.path} was made"
            raise UsageError.expected(what, repr(new[changed]))
        if not same_teacher(self.manifest["teacher"], describe_teacher(teacher)):
            what = f"the teacher {self.manifest['teacher']['name']}, with which {self.path} was made"
            raise UsageError.expected(what, teacher.name)

    def describe(self) -> dict[str, Any]:
        """For the manifest of the result that this one is added to."""
        return {"name": self.path.name, **{key: self.manifest.get(key) for key in ("corpus", "read", "added_to")}}

    def merge(self, statistics: Mapping[str, Statistics]) -> dict[str, Statistics]:
        """Old and new statistics on the new vocabulary, which contains the old one."""
        with report_damage(self.path):
            return {label: merge(self.statistics[label], new, new.vocabulary) for label, new in statistics.items()}


@contextmanager
def report_damage(*paths: Path) -> Iterator[None]:
    """Report statistics and facts that do not match each other, as in a damaged folder, as a FormatError."""
    try:
        with np.errstate(all="ignore"):  # numbers that are not finite are refused on writing
            yield
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise MemoryError from error
        names = " or ".join(map(str, paths))
        raise FormatError(
            f"The manifest or the statistics of {names} are damaged ({error!r}); make it again."
        ) from error


def merge_results(folders: Sequence[str | os.PathLike[str]]) -> Result:
    """Merge results of the same method, settings and teacher."""
    if len(folders) < 2:
        raise UsageError.expected("at least two results", len(folders), where="merge")
    results = [PreviousResult(Path(folder)) for folder in folders]
    with report_damage(*(result.path for result in results)):
        return _merge(results)


def _merge(results: Sequence[PreviousResult]) -> Result:
    first, *others = results
    manifests = [result.manifest for result in results]
    statistics = first.statistics
    for other in others:
        for key in ("method", "settings"):
            mine, its = first.manifest[key], other.manifest[key]
            if mine != its:
                raise UsageError.conflict(f"Cannot merge {other.path} into {first.path}: {key} {its} and {mine} differ")
        if not same_teacher(other.manifest["teacher"], first.manifest["teacher"]):
            names = " and ".join(str(result.manifest["teacher"]["name"]) for result in (other, first))
            raise UsageError.conflict(f"Cannot merge {other.path} into {first.path}: the teachers {names} differ")
        statistics = {label: merge(values, other.statistics[label]) for label, values in statistics.items()}
    settings = from_manifest(first.manifest["distillation"], str(first.path))
    corpora = [manifest["corpus"] for manifest in manifests]
    facts = {
        "merged": [result.path.name for result in results],
        "corpus": {"words": sum(corpus["words"] for corpus in corpora), "parts": corpora},
        "read": {key: sum(manifest["read"][key] for manifest in manifests) for key in ("sentences", "words", "pieces")},
    }
    learner = first.learner()
    return describe_result(learner.finish(statistics), learner, statistics, settings, first.manifest["teacher"], facts)
