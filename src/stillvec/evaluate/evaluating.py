"""`evaluate`: every set of vectors on every dataset, on its own words and on the words that all sets know."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import CallError, DatasetError
from stillvec.evaluate.datasets import Dataset, datasets
from stillvec.evaluate.intervals import Resampling
from stillvec.evaluate.lookup import Lookup
from stillvec.evaluate.report import Detail, Report, Score, Unknown
from stillvec.evaluate.tasks import TASKS, Answers, Items
from stillvec.registry import nearest_known
from stillvec.vectors import WordVectors


def evaluate(
    vectors: WordVectors | Mapping[str, WordVectors],
    data: str | os.PathLike[str] | None = None,
    tasks: Sequence[str] | None = None,
    *,
    unknown: Unknown = "skip",
    common: bool = True,
    resamples: int = 1000,
    seed: int = 0,
) -> Report:
    """Score vectors, or several sets of them by name, on all datasets of a folder.

    `data` is a folder with `similarity/`, `analogy/`, `sentences/`; None is $STILLVEC_DATA, or else the
    datasets that gensim carries. `unknown` says what becomes of items with unknown words: "skip" leaves
    them out, "mean" and "zero" put that vector in their place. With several sets `common` adds scores on
    the items that all of them know.

    A file that cannot be read is told in `Report.errors`, and the others are still scored; DatasetError if
    all fail.
    """
    if unknown not in get_args(Unknown):
        raise CallError(
            f"There is no policy {unknown!r} for unknown words; {nearest_known(unknown, get_args(Unknown))}"
        )
    if resamples < 0:
        raise CallError(f"The number of resamples is 0 or more, and {resamples} came.")
    sets = {"vectors": vectors} if isinstance(vectors, WordVectors) else dict(vectors)
    if not sets:
        raise CallError("Evaluating needs at least one set of vectors, and none came.")
    lookups = {name: Lookup(each, unknown) for name, each in sets.items()}
    resampling = Resampling(resamples, seed)
    scores: list[Score] = []
    errors: list[str] = []
    for dataset in datasets(data, tasks):
        try:
            scores += _scores(dataset, lookups, common and len(sets) > 1, resampling)
        except DatasetError as error:
            errors.append(str(error))
    if not scores:
        raise DatasetError(" ".join(errors))
    return Report(tuple(scores), tuple(errors))


class _Part(NamedTuple):
    words: Literal["own", "common"]
    covered: NDArray[np.bool_]  # (n,) known
    scored: NDArray[np.bool_]  # (n,) counted in the value


def _scores(dataset: Dataset, lookups: Mapping[str, Lookup], common: bool, resampling: Resampling) -> Iterator[Score]:
    task = TASKS[dataset.task]()
    items = task.read(dataset.path)
    answers = {name: task.answer(lookup, items) for name, lookup in lookups.items()}
    shared = np.logical_and.reduce([each.covered for each in answers.values()])
    for name, lookup in lookups.items():
        own = answers[name].covered
        counted = own if lookup.unknown == "skip" else own | True
        for words, covered, scored in [_Part("own", own, counted), _Part("common", shared, shared)][: 1 + common]:
            chosen = np.flatnonzero(scored)
            for metric, (value, low, high) in task.score(items, answers[name], chosen, resampling).items():
                yield Score(
                    name,
                    dataset.task,
                    dataset.name,
                    metric,
                    value,
                    low,
                    high,
                    n_items=len(items),
                    n_covered=int(covered.sum()),
                    unknown=lookup.unknown,
                    words=words,
                    details=_details(items, answers[name], metric, covered, scored),
                )


def _details(
    items: Items, answers: Answers, metric: str, covered: NDArray[np.bool_], scored: NDArray[np.bool_]
) -> tuple[Detail, ...]:
    """The mean answer of each section, in the order of the file."""
    if not items.sections:
        return ()
    names = [*dict.fromkeys(items.sections)]
    place = {name: number for number, name in enumerate(names)}
    section = np.array([place[name] for name in items.sections])
    counts = [np.bincount(section[mask], minlength=len(names)) for mask in (covered | True, covered, scored)]
    sums = np.bincount(section[scored], answers.values[metric][scored], minlength=len(names))
    means = np.divide(sums, counts[2], out=np.full(len(names), np.nan), where=counts[2] > 0)
    return tuple(
        Detail(name, float(mean), int(n), int(known))
        for name, mean, n, known in zip(names, means, counts[0], counts[1], strict=True)
    )
