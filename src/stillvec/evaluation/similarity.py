"""Word similarity: Spearman's ρ between cosines and human ratings of word pairs (Finkelstein et al. 2002).

Feature tuples (`refine --step feature_tuples`) can be judged by their own measures in place of the cosine (`measure`).

Files: `similarity/*.tsv`, `*.csv`, `*.txt` with word, word, rating. Interval: percentile bootstrap over the pairs.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from stillvec.evaluation.intervals import Estimate, Resampling, Rows, spearman
from stillvec.evaluation.item_files import parse_scored_pairs
from stillvec.evaluation.tasks import Answers, Items
from stillvec.evaluation.word_measure import MeasuredTask
from stillvec.heads.dataset_files import columns
from stillvec.heads.lookup import Lookup


@dataclass(frozen=True)
class Similarity(MeasuredTask):
    files: ClassVar[tuple[str, ...]] = ("similarity", ".tsv", ".csv", ".txt")
    max_difference: ClassVar[float] = 2.0
    leaks: ClassVar[bool] = True

    def read(self, path: Path) -> Items:
        return parse_scored_pairs(columns(path), path, "a word, a word and a number")

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        left, right = (lookup.rows([pair[side] for pair in items.texts]) for side in (0, 1))
        covered = (left >= 0) & (right >= 0)
        return Answers(covered, {"spearman": self.compare(lookup.take(left), lookup.take(right))})

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        predicted = answers.values["spearman"][chosen]
        return {"spearman": resampling.correlation(spearman, items.gold[chosen], predicted)}
