"""The results of a run: their manifests, and their folders, each written as soon as it is finished."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from stillvec import __version__
from stillvec.errors import StillvecError
from stillvec.files import check_replaceable
from stillvec.formats.early_statistics import EarlyStatistics
from stillvec.formats.request import Request
from stillvec.formats.stillvec_folder import LAYOUT
from stillvec.learners import LEARNERS
from stillvec.learners.accumulators import HasDim, Learner
from stillvec.pipeline.settings import Distillation, to_manifest
from stillvec.progress import Phase, Progress
from stillvec.refinement import refine_steps, unknown_steps
from stillvec.refinement.pca import Pca
from stillvec.registry import Registry
from stillvec.result import MethodResult, MethodStatistics, Result
from stillvec.statistics import STORED, Statistics
from stillvec.vectors import WordVectors

if TYPE_CHECKING:
    from stillvec.baselines import Baseline
    from stillvec.pipeline.distillation_run import Run
    from stillvec.pipeline.pass_checkpoint import PassCheckpoint
    from stillvec.pipeline.training_run import TrainingRun
    from stillvec.teachers import Teacher

_EARLY_BYTES = 32 << 20  # of statistics; fewer are written after the vectors
_LIBRARIES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "safetensors")


def describe_method(method: Learner | Baseline, registry: Registry[Any] = LEARNERS) -> dict[str, Any]:
    return {"method": registry.name_of(method), "settings": dataclasses.asdict(method)}  # type: ignore[arg-type]


def describe_teacher(teacher: Teacher) -> dict[str, Any]:
    names = ("name", "digest", "sampled_digest", "dim", "depth", "window", "precision")
    facts = {name: getattr(teacher, name) for name in names} | {"device": teacher.device.type}
    if teacher.agreement is not None:
        facts["bf16_agreement"] = round(teacher.agreement, 4)
    return facts if teacher.head is None else facts | {"sentence_vectors": teacher.head.describe()}


def describe_program() -> dict[str, Any]:
    versions = {}
    for name in _LIBRARIES:
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


def describe_result(
    finished: Result,
    learner: Learner,
    statistics: Mapping[str, Statistics],
    settings: Distillation,
    teacher: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> Result:
    """Add the manifest to what a method returned."""
    vectors = finished.vectors
    if settings.dim is not None and not isinstance(learner, HasDim):
        vectors = Pca(settings.dim)(vectors)
    manifest = {
        **describe_method(learner),
        "notes": dict(finished.notes),
        "distillation": to_manifest(settings),
        "teacher": dict(teacher),
        **facts,
        "seed": settings.seed,
        **describe_program(),
    }
    return complete(vectors, manifest, settings.oov, finished.model, list_statistics(statistics))


def list_statistics(statistics: Mapping[str, Statistics]) -> dict[str, NDArray[Any]]:
    """The arrays of all statistics as a folder has them."""
    return {
        f"{part}/{label}": array
        for part, values in statistics.items()
        for label, array in values.arrays.items()
        if not label.startswith(STORED)
    }


def complete(
    vectors: WordVectors,
    manifest: dict[str, Any],
    oov: str | None,
    model: Mapping[str, Any] | None = None,
    statistics: Mapping[str, Any] | None = None,
) -> Result:
    """A result with its manifest as provenance and, with `oov`, n-grams for out-of-vocabulary words."""
    vectors = vectors.with_provenance(manifest)
    for _, after in refine_steps(vectors, unknown_steps(oov)):
        vectors = after
    return Result(vectors, manifest["notes"], model or {}, statistics or {})


def locate_results(out: str | os.PathLike[str], names: Iterable[str]) -> dict[str, Path]:
    """The folder of each result: `out` itself, or with several results folders inside it."""
    labels = [*names]
    return {name: Path(out) / name if len(labels) > 1 else Path(out) for name in labels}


def check_folders(
    out: str | os.PathLike[str], requests: Mapping[str, Request], *, force: bool = False, may_be_finished: bool = True
) -> list[Path]:
    """Refuse folders that cannot or must not be written; returns them. One of the same settings may be finished."""
    folders = locate_results(out, requests)
    for name, request in requests.items():
        if force or not (may_be_finished and request.has_settings_of(folders[name])):
            check_replaceable(folders[name], LAYOUT, force=force)
    return [*folders.values()]


def find_finished(
    out: str | os.PathLike[str], requests: Mapping[str, Request], *, force: bool = False
) -> dict[str, Path]:
    """The folders that have the result of the same request; raises an error if another result is there."""
    folders = locate_results(out, requests)
    return {name: folders[name] for name, request in requests.items() if request.check(folders[name], force=force)}


def save_steps(
    run: Run | TrainingRun, out: str | os.PathLike[str], *, statistics: bool = True, force: bool = False
) -> Iterator[Progress]:
    """Write each result of a run as soon as it is finished, and yield its progress.

    Large statistics are written while the vectors are computed from them.
    """
    early: EarlyStatistics | None = None
    with ExitStack() as stack:
        for event in run.steps():
            if isinstance(event, MethodStatistics):
                folder = locate_results(out, run.names)[event.name]
                if statistics and sum(array.nbytes for array in event.arrays.values()) >= _EARLY_BYTES:
                    with suppress(OSError):  # what prevents it will be reported at the end
                        early = stack.enter_context(EarlyStatistics(folder, LAYOUT, event.arrays))
            elif isinstance(event, MethodResult):
                folder = locate_results(out, run.names)[event.name]
                options = {"request": run.requests(statistics=statistics)[event.name], "early": early}
                yield Progress(Phase.WRITING, 0, None, "", 0.0, subject=event.name)
                _save(event.result, folder, run.checkpoint, statistics=statistics, force=force, **options)
                stack.close()
                early = None
            else:
                yield event
    if run.checkpoint is not None:
        run.checkpoint.remove()


def _save(result: Result, folder: Path, checkpoint: PassCheckpoint | None, **options: Any) -> None:
    try:
        result.save(folder, **options)
    except OSError as error:
        if checkpoint is None or not checkpoint.path.exists():
            raise
        raise StillvecError(
            f"{folder} could not be written: {error.strerror or error}; --resume continues from {checkpoint.path}.",
            code="not-written",
        ) from None
