"""What a run gives: signs of life, results with how they were made, folders written as soon as each is there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from stillvec.errors import StillvecError, UsageError
from stillvec.files import check_replaceable
from stillvec.learners import Learner
from stillvec.learners.accumulators import HasDim
from stillvec.pipeline.manifest import describe_learner, describe_program
from stillvec.pipeline.pass_checkpoint import PassCheckpoint
from stillvec.pipeline.settings import Distillation, to_manifest
from stillvec.progress import Progress
from stillvec.refinement import refine_steps, unknown_steps
from stillvec.refinement.pca import Pca
from stillvec.result import MethodResult, Result
from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import STORED
from stillvec.vectors import WordVectors


def describe_result(
    finished: Result,
    learner: Learner,
    statistics: Mapping[str, Statistics],
    settings: Distillation,
    teacher: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> Result:
    """What a method made, with how it was made."""
    vectors = finished.vectors
    if settings.dim is not None and not isinstance(learner, HasDim):
        vectors = Pca(settings.dim)(vectors)
    manifest = {
        **describe_learner(learner),
        "notes": dict(finished.notes),
        "distillation": to_manifest(settings),
        "teacher": dict(teacher),
        **facts,
        "seed": settings.seed,
        **describe_program(),
    }
    arrays = {
        f"{part}/{label}": array
        for part, kept in statistics.items()
        for label, array in kept.arrays.items()
        if not label.startswith(STORED)
    }
    return complete(vectors, manifest, settings.oov, finished.model, arrays)


def complete(
    vectors: WordVectors,
    manifest: dict[str, Any],
    oov: str | None,
    model: Mapping[str, Any] | None = None,
    statistics: Mapping[str, Any] | None = None,
) -> Result:
    """The result with its manifest as provenance and, if asked, n-grams for out-of-vocabulary words."""
    vectors = vectors.with_provenance(manifest)
    for _, after in refine_steps(vectors, unknown_steps(oov)):
        vectors = after
    return Result(vectors, manifest["notes"], model or {}, statistics or {})


def check_folders(out: str | os.PathLike[str], names: Sequence[str], also: Iterable[Path] = ()) -> None:
    """The folders that results of these names would take can be written."""
    place = Path(out)
    targets = [place] if len(names) == 1 else [place / name for name in names]
    for target in (*targets, *also):
        check_replaceable(target, "manifest.json")
    there = next(folder for folder in (targets[0], *targets[0].absolute().parents) if folder.exists())
    if not there.is_dir():
        raise UsageError(f"The output {out} cannot be a folder, since {there} is a file; give another name.")
    if not os.access(there, os.W_OK):
        raise UsageError(f"The output {out} cannot be written, since {there} is read-only; give another name.")


class Work(Protocol):
    """A run of any kind, as far as saving goes."""

    written: dict[str, Path]
    checkpoint: PassCheckpoint | None

    @property
    def names(self) -> tuple[str, ...]: ...
    def steps(self) -> Iterator[Progress | MethodResult]: ...


def saved_steps(run: Work, out: str | os.PathLike[str], *, statistics: bool = True) -> Iterator[Progress]:
    """The progress of a run whose results are written as soon as they are finished: `run.written` has the folders."""
    for event in run.steps():
        if isinstance(event, MethodResult):
            folder = Path(out) / event.name if len(run.names) > 1 else Path(out)
            _save(event.result, folder, run.checkpoint, statistics=statistics)
            run.written[event.name] = folder
        else:
            yield event
    if run.checkpoint is not None:
        run.checkpoint.remove()


def _save(result: Result, folder: Path, checkpoint: PassCheckpoint | None, *, statistics: bool) -> None:
    try:
        result.save(folder, statistics=statistics)
    except OSError as error:
        if checkpoint is None or not checkpoint.path.exists():
            raise
        raise StillvecError(
            f"{folder} could not be written: {error.strerror or error}; once that is fixed, --resume continues from "
            f"{checkpoint.path}.",
            code="not-written",
        ) from None
