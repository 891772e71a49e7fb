"""Earlier results: one to which a new corpus is added, or several that are merged by adding their statistics."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stillvec.errors import FormatError, StillvecWarning, UsageError, is_out_of_memory
from stillvec.formats import load, read_manifest, read_statistics
from stillvec.formats.manifest_view import corpora_of
from stillvec.learners import LEARNERS, Learner
from stillvec.learners.accumulators import HasEarlierDefaults
from stillvec.notation import Spec
from stillvec.pipeline.result_folders import describe_method, describe_result, describe_teacher
from stillvec.pipeline.settings import Distillation, from_manifest, parse_methods
from stillvec.registry import settings_from
from stillvec.result import Result
from stillvec.statistics import N_ISOLATED, Statistics, merge
from stillvec.teachers.digest import same_teacher
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.segmenters import describe_segmenter

if TYPE_CHECKING:
    from stillvec.teachers import Teacher

_MAX_NAMES = 3
_NOT_INHERITED = ("include_words", "device", "unsafe_weights", "remote_code")
_OF_METHODS = ("layer", "dictionary", "purpose", "senses")  # settings that only some methods have
_DEFINE_WORDS: dict[str, Callable[[Any], str]] = {  # what the words of two results must share
    "lowercase": lambda value: "lower-cased" if value else "case-sensitive",
    "segmenter": lambda value: describe_segmenter(str(value)),
}
_NEEDED = {"method": str} | dict.fromkeys(("settings", "distillation", "teacher", "corpus", "read"), dict)


class PreviousResult:
    """A folder with statistics."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: dict[str, Any] = read_manifest(path)
        self.vocabulary: Vocabulary = load(path, format="stillvec").vocabulary
        arrays = read_statistics(path)
        _check_manifest(self.manifest, path)
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
        return settings_from(kind, {**earlier_settings(kind), **self.manifest["settings"]}, str(self.path))

    def check(self, teacher: Teacher, learners: Mapping[str, Learner]) -> None:
        """Raise an error unless method, settings and teacher are the same."""
        if len(learners) != 1:
            raise UsageError.expected("one method", f"{len(learners)}", where=f"--add-to {self.path}")
        (learner,) = learners.values()
        new, old = describe_method(learner), describe_method(self.learner())
        if new["method"] == old["method"]:
            new, old = new["settings"], old["settings"]
        changed = next((key for key in new if new[key] != old[key]), None)
        if changed is not None:
            what = f"{changed} {old[changed]!r}, with which {self.path} was made"
            raise UsageError.expected(what, repr(new[changed]))
        if not same_teacher(self.manifest["teacher"], describe_teacher(teacher)):
            what = f"the teacher {self.manifest['teacher']['name']}, with which {self.path} was made"
            raise UsageError.expected(what, teacher.name)

    def warn_repeated(self, corpus: Mapping[str, Any]) -> None:
        """Warn if text of a corpus was already read for this result."""
        with report_damage(self.path):
            names = _find_repeated(self.manifest, {"corpus": corpus})
        if names:
            _warn(f"{names} was already read for {self.path}; adding it again counts it twice.")

    def describe(self) -> dict[str, Any]:
        """For the manifest of the result that this one is added to."""
        return {"name": self.path.name, **{key: self.manifest.get(key) for key in ("corpus", "read", "added_to")}}

    def merge(self, statistics: Mapping[str, Statistics]) -> dict[str, Statistics]:
        """Old and new statistics on the new vocabulary, which contains the old one."""
        with report_damage(self.path):
            return {label: merge(self.statistics[label], new, new.vocabulary) for label, new in statistics.items()}


def earlier_settings(kind: object) -> Mapping[str, object]:
    """The values of settings that manifests of earlier versions lack, where today's defaults are others."""
    return kind.EARLIER if isinstance(kind, HasEarlierDefaults) else {}


def _check_manifest(manifest: Mapping[str, Any], path: Path) -> None:
    missing = next((key for key, kind in _NEEDED.items() if not isinstance(manifest.get(key), kind)), None)
    if missing is not None:
        raise FormatError(
            f"The manifest of {path} has no {missing!r}; only distilled results can be merged or added to.", path=path
        )


def _find_repeated(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The names of text that two results share, by its digests; empty if they share none."""
    digests = {digest for corpus in corpora_of(one) for digest in _digests(corpus)}
    names = [name for corpus in corpora_of(other) for digest, name in _digests(corpus).items() if digest in digests]
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def _digests(corpus: Mapping[str, Any]) -> dict[str, str]:
    """The digest of each file of a corpus and its name; of the whole for a result that has no digests of files."""
    sources = [*map(str, corpus.get("sources") or ())]
    if files := corpus.get("file_digests"):
        return dict(zip(files, sources or ["the text"] * len(files), strict=False))
    return {str(corpus["digest"]): ", ".join(sources) or "the text"} if corpus.get("digest") else {}


def _warn(message: str) -> None:
    warnings.warn(message, StillvecWarning, stacklevel=3)


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
            f"The manifest or the statistics of {names} are damaged ({error!r}); create it again."
        ) from error


def inherit_settings(settings: Distillation, folder: str | os.PathLike[str], given: Container[str]) -> Distillation:
    """The settings of an earlier result, except those that are given; refuses another definition of a word."""
    manifest = read_manifest(folder)
    _check_manifest(manifest, Path(folder))
    earlier = from_manifest(manifest["distillation"], str(folder))
    with report_damage(Path(folder)):
        own = _settings_of_method(earlier, manifest)
    if "method" in given and settings.method != manifest["method"]:
        own = {"method": settings.method} | {name: getattr(settings, name) for name in _OF_METHODS}
    names = [field.name for field in fields(Distillation) if field.name not in _NOT_INHERITED]
    inherited = {name: getattr(earlier, name) for name in names} | own
    merged = replace(
        settings, **{name: value for name, value in inherited.items() if name not in given or name == "method"}
    )
    for name, describe in _DEFINE_WORDS.items():
        mine, its = getattr(merged, name), getattr(earlier, name)
        if mine != its:
            message = f"The words of {os.fspath(folder)} are {describe(its)}; words {describe(mine)} cannot be added"
            raise UsageError.conflict(message, path=folder)
    return merged


def _settings_of_method(earlier: Distillation, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for one result of a run that may have had several methods and layers."""
    for _, spec in parse_methods(earlier.method):
        if spec.name != manifest["method"]:
            continue
        known = {field.name for field in fields(LEARNERS[spec.name])}  # type: ignore[arg-type]
        defaults = Distillation()
        own = {name: getattr(earlier if name in known else defaults, name) for name in _OF_METHODS}
        if own["layer"] == "all":
            own["layer"] = str(manifest["settings"].get("layer"))
        own["method"] = str(spec)
        (learner,) = replace(earlier, **own).learners(depth=0).values()
        if json.loads(json.dumps(asdict(learner), default=str)) == manifest["settings"]:  # type: ignore[call-overload]
            return own
    earlier_values = earlier_settings(LEARNERS[manifest["method"]])
    if any(name not in manifest["settings"] for name in earlier_values):
        values = {name: str(value) for name, value in {**earlier_values, **manifest["settings"]}.items()}
        return {"method": str(Spec(manifest["method"], values))}
    return {"method": manifest["method"]}


def merge_results(folders: Sequence[str | os.PathLike[str]]) -> Result:
    """Merge results of the same method, settings and teacher."""
    if len(folders) < 2:
        raise UsageError.expected("at least two results", len(folders), where="merge")
    results = [PreviousResult(Path(folder)) for folder in folders]
    with report_damage(*(result.path for result in results)):
        return _merge(results)


def count_isolated(statistics: Mapping[str, Statistics]) -> dict[str, int]:
    """How many words were only read alone, for the manifest."""
    counts = [int((values[N_ISOLATED] > 0).sum()) for values in statistics.values() if N_ISOLATED in values.arrays]
    return {"words_without_context": max(counts)} if counts else {}


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
        for name, describe in _DEFINE_WORDS.items():
            default = getattr(Distillation, name)
            mine, its = (result.manifest["distillation"].get(name, default) for result in (first, other))
            if mine != its:
                message = f"the words of {first.path} are {describe(mine)}, those of {other.path} {describe(its)}"
                raise UsageError.conflict(f"Cannot merge: {message}")
        statistics = {label: merge(values, other.statistics[label]) for label, values in statistics.items()}
    for one, two in combinations(results, 2):
        if names := _find_repeated(one.manifest, two.manifest):
            _warn(f"{names} was read for both {one.path} and {two.path}; in the merged result it counts twice.")
    settings = from_manifest(first.manifest["distillation"], str(first.path))
    corpora = [manifest["corpus"] for manifest in manifests]
    facts: dict[str, Any] = {
        "merged": [result.path.name for result in results],
        "corpus": {"words": sum(corpus["words"] for corpus in corpora), "parts": corpora},
        "read": {key: sum(manifest["read"][key] for manifest in manifests) for key in ("sentences", "words", "pieces")},
    }
    facts["read"] |= count_isolated(statistics)
    learner = first.learner()
    return describe_result(learner.finish(statistics), learner, statistics, settings, first.manifest["teacher"], facts)
