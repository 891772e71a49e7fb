"""What a task is: it finds its files, reads their items, answers them with vectors, and scores the answers.

The four steps are apart so that the dear one, `answer`, is done once a set of vectors, and the answers can
then be scored on any part of the items: those that this set knows, or those that all sets know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Estimate, Resampling
from stillvec.evaluation.lookup import Lookup
from stillvec.registry import Registry


@dataclass(frozen=True)
class Items:
    """The questions of one dataset and their right answers."""

    texts: tuple[tuple[str, ...], ...]  # (n, 2) words or sentences, (n, 4) an analogy; a word and its translations
    gold: NDArray[np.float64]  # (n,)
    sections: tuple[str, ...] = ()  # (n,) or none

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Answers:
    """What a set of vectors answers to each item."""

    covered: NDArray[np.bool_]  # (n,) all that the item asks about is known
    values: Mapping[str, NDArray[Any]]  # metric → (n,); whatever stands at an item that is skipped is not looked at;
    # a task may keep more under other names


class Task(Protocol):
    def find(self, folder: Path) -> list[Path]:
        """The files of this task in a folder of data."""
        ...

    def read(self, path: Path) -> Items:
        """The items of a file; DatasetError names the file and line of what is not one."""
        ...

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        """Answer every item, or with the policy "skip" those that are covered."""
        ...

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        """Metric → its estimate on the chosen items."""
        ...


@runtime_checkable
class JointlyScored(Protocol):
    """A task in which an answer depends on the other items: on fewer of them it must be given anew."""

    def narrow(self, items: Items, answers: Answers, chosen: NDArray[np.int64]) -> Answers:
        """The answers had only the chosen items been asked, from what `answers` keep."""
        ...


TASKS: Registry[type[Task]] = Registry(
    "task",
    {
        "similarity": "stillvec.evaluation.similarity:Similarity",
        "analogy": "stillvec.evaluation.analogy:Analogy",
        "relation": "stillvec.evaluation.relation:Relation",
        "categorization": "stillvec.evaluation.categorization:Categorization",
        "outliers": "stillvec.evaluation.outliers:Outliers",
        "synonyms": "stillvec.evaluation.synonyms:Synonyms",
        "sentences": "stillvec.evaluation.sentences:Sentences",
        "classification": "stillvec.evaluation.classification:Classification",
        "tagging": "stillvec.evaluation.tagging:Tagging",
        "probing": "stillvec.evaluation.probing:Probing",
        "labels": "stillvec.evaluation.labels:Labels",
        "information": "stillvec.evaluation.information:MutualInformation",
        "translation": "stillvec.evaluation.translation:Translation",
        "bias": "stillvec.evaluation.bias:Bias",
    },
)
