"""Word similarity: Spearman's ρ between cosines and human ratings of word pairs (Finkelstein et al. 2002).

Files: `similarity/*.tsv`, `*.csv`, `*.txt` with word, word, rating. Interval: percentile bootstrap over the pairs.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.dataset_files import columns, files_in, parse_scored_pairs
from stillvec.evaluation.intervals import Estimate, Resampling, spearman
from stillvec.evaluation.lookup import Lookup, cosines
from stillvec.evaluation.tasks import Answers, Items, Task


@dataclass(frozen=True)
class Similarity(Task):
    max_difference: ClassVar[float] = 2.0
    leaks: ClassVar[bool] = True

    def find(self, folder: Path) -> list[Path]:
        return files_in(folder / "similarity", (".tsv", ".csv", ".txt"))

    def read(self, path: Path) -> Items:
        return parse_scored_pairs(columns(path), path, "a word, a word and a number")

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        left, right = (lookup.rows([pair[side] for pair in items.texts]) for side in (0, 1))
        covered = (left >= 0) & (right >= 0)
        return Answers(covered, {"spearman": cosines(lookup.take(left), lookup.take(right))})

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        predicted = answers.values["spearman"][chosen]
        return {"spearman": resampling.correlation(spearman, items.gold[chosen], predicted)}
