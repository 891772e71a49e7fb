"""Results that were distilled apart become one: their statistics are added, and the method finishes anew."""

from __future__ import annotations

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
    """One result from several of the same method, settings and teacher."""
    if len(folders) < 2:
        raise UsageError(f"Two results or more are merged, and {len(folders)} came.")
    every = [PreviousResult(Path(folder)) for folder in folders]
    with report_damage(*(each.path for each in every)):
        return _merged(every)


def _merged(every: Sequence[PreviousResult]) -> Result:
    first, *others = every
    parts = first.statistics
    for other in others:
        for key in ("method", "settings"):
            if other.manifest[key] != first.manifest[key]:
                raise UsageError(f"{other.path} and {first.path} differ in {key}; only like merges with like.")
        if not same_teacher(other.manifest["teacher"], first.manifest["teacher"]):
            raise UsageError(f"{other.path} and {first.path} have different teachers; their statistics do not add up.")
        parts = {label: merge(kept, other.statistics[label]) for label, kept in parts.items()}
    settings = from_manifest(first.manifest["distillation"], str(first.path))
    facts = {
        "merged": [each.path.name for each in every],
        "corpus": {
            "words": sum(each.manifest["corpus"]["words"] for each in every),
            "parts": [each.manifest["corpus"] for each in every],
        },
        "read": {key: sum(each.manifest["read"][key] for each in every) for key in ("sentences", "words", "pieces")},
    }
    learner = first.learner()
    return describe_result(learner.finish(parts), learner, parts, settings, first.manifest["teacher"], facts)
