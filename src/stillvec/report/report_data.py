"""What a page is made of: the report, the vectors and how they were made, and the pairs of words behind similarity."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import StillvecError
from stillvec.evaluation import Report
from stillvec.evaluation.datasets import datasets
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.similarity import Similarity
from stillvec.evaluation.tasks import Items
from stillvec.report.mean_scores import MeanScore, basis, ranking
from stillvec.report.svg import colour
from stillvec.vectors import WordVectors

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ScoredPairs:
    """A similarity dataset with the cosine that each set gives to each pair."""

    name: str
    items: Items
    cosines: Mapping[str, Floats]  # set → (n,)
    covered: Mapping[str, NDArray[np.bool_]]  # set → (n,)

    def shared(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The pairs that all of these sets know."""
        return np.flatnonzero(np.logical_and.reduce([self.covered[name] for name in names]))


@dataclass(frozen=True)
class ReportData:
    """All that sections of the page take from."""

    report: Report
    sets: Mapping[str, WordVectors]  # those of the report that were given
    manifests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pairs: tuple[ScoredPairs, ...] = ()
    words: tuple[str, ...] = ()  # whose neighbours are asked for; none: some are chosen

    @cached_property
    def standings(self) -> list[MeanScore]:
        return ranking(self.report)

    @cached_property
    def names(self) -> list[str]:
        """The sets, the best first."""
        return [each.name for each in self.standings]

    @cached_property
    def given(self) -> list[str]:
        """Those whose vectors are at hand, the best first."""
        return [name for name in self.names if name in self.sets]

    @cached_property
    def basis(self) -> str:
        return basis(self.report)

    def colour(self, name: str) -> str:
        return colour(self.names.index(name))


def pairs_of(
    report: Report, sets: Mapping[str, WordVectors], data: str | os.PathLike[str] | None
) -> tuple[ScoredPairs, ...]:
    """The similarity datasets of a report, read again; those that are no longer there, or changed, are left out."""
    sizes = {score.dataset: score.n_items for score in report.scores if score.task == "similarity"}
    if not sizes or not sets:
        return ()
    try:
        found = datasets(data, ["similarity"])
    except StillvecError:
        return ()  # a report may be written where the data are not
    task, lookups = Similarity(), {name: Lookup(each) for name, each in sets.items()}
    kept = []
    for dataset in found:
        if dataset.name in sizes:
            items = task.read(dataset.path)
            if len(items) == sizes[dataset.name]:
                answers = {name: task.answer(lookup, items) for name, lookup in lookups.items()}
                cosines = {name: each.values["spearman"] for name, each in answers.items()}
                covered = {name: each.covered for name, each in answers.items()}
                kept.append(ScoredPairs(dataset.name, items, cosines, covered))
    return tuple(kept)
