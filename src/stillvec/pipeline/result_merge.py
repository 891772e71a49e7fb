"""Merge results that were distilled separately: their statistics are added, and the method finishes again."""

import os
from collections.abc import Sequence
from pathlib import Path

from stillvec.errors import UsageError
from stillvec.pipeline.previous_result import PreviousResult, report_damage
from stillvec.pipeline.result_folders import describe_result
from stillvec.pipeline.settings import from_manifest
from stillvec.result import Result
from stillvec.statistics import merge
from stillvec.teachers.digest import same_teacher


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
