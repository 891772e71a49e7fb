"""The function `distill`: word vectors from a teacher and a corpus."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.pipeline.distillation_run import Run
from stillvec.pipeline.result_folders import check_folders, saved_steps
from stillvec.pipeline.settings import Distillation
from stillvec.progress import Progress
from stillvec.registry import settings_from
from stillvec.vectors import WordVectors


def distill(
    *corpus: str | os.PathLike[str] | Corpus,
    out: str | os.PathLike[str] | None = None,
    add_to: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> WordVectors | dict[str, WordVectors]:
    """Word vectors from a teacher and a corpus (files, folders, globs, or one `Corpus`; none: isolated words).

    Settings are those of `Distillation` (teacher, method, contexts, min_count, …). Several methods give a dictionary.
    Methods that train keep the teacher's contexts in the folder `store` (default: a cache folder of the user's), so
    that a second run with other settings does not ask the teacher. `resume` goes on from the last checkpoint of a run
    that was stopped: of the pass, beside `out`, or of the training, beside the contexts.
    """
    given = settings_from(Distillation, settings)
    run = Run(given, corpus_of(corpus), add_to, store=store, resume=resume, out=out)
    if out is not None:
        check_output(out, run)
    for event in run.steps() if out is None else saved_steps(run, out):
        if progress is not None and isinstance(event, Progress):
            progress(event)
    found = {name: result.vectors for name, result in run.results.items()}
    return next(iter(found.values())) if len(found) == 1 else found


def check_output(out: str | os.PathLike[str], run: Run) -> None:
    """Refuse before the work what would be refused after it."""
    also = Path(out).glob("*-layer-*") if run.settings.layer == "all" else ()  # how many, only the teacher knows
    check_folders(out, [*run.settings.learners(depth=1)], also)


def corpus_of(given: Sequence[str | os.PathLike[str] | Corpus]) -> Corpus | None:
    """One `Corpus`, or files, folders and globs, or nothing."""
    if len(given) == 1 and isinstance(given[0], Corpus):
        return given[0]
    if any(isinstance(each, Corpus) for each in given):
        raise UsageError("One Corpus is taken, or files, folders and globs; several Corpus objects came.")
    paths = [each for each in given if not isinstance(each, Corpus)]
    return Corpus(*paths) if paths else None
