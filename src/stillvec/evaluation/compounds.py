"""Compounds: do the words of a literal compound have more in common? (Reddy et al. 2011; Bhat et al. 2020, table 11.)

The answer is the similarity of the two words; with `of=phrase`, that of the compound's own vector and its composition:
the sum of the words' unit vectors, or the intersection of feature tuples (Cordeiro et al. 2016). The metrics are
Spearman's ρ and Pearson's r with the ratings. Files: `compounds/*.tsv` with two words in the first column and how
literal they are in the second. Interval: percentile bootstrap over the compounds.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from stillvec.errors import DatasetError
from stillvec.evaluation.dataset_files import columns, make_items
from stillvec.evaluation.intervals import Estimate, Resampling, Rows, pearson, spearman
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.tasks import Answers, Items
from stillvec.evaluation.word_measure import MeasuredTask
from stillvec.numerics import unit_rows
from stillvec.refinement.fuzzy_sets import intersection

_WHAT = "two words and a number"


@dataclass(frozen=True)
class Compounds(MeasuredTask):
    of: Literal["words", "phrase"] = "words"  # compare the two words, or the phrase with its words

    files: ClassVar[tuple[str, ...]] = ("compounds", ".tsv")
    max_difference: ClassVar[float] = 2.0

    def read(self, path: Path) -> Items:
        texts, ratings = [], []
        for line, fields in columns(path):
            words = fields[0].split()
            try:
                rating = float(fields[1]) if len(words) == 2 else np.nan
            except (ValueError, IndexError):
                rating = np.nan
            if not np.isfinite(rating):
                raise DatasetError.expected(_WHAT, repr(" ".join(fields)[:60]), path=path, line=line)
            texts.append((*words, " ".join(words)))
            ratings.append(rating)
        return make_items(path, _WHAT, texts, ratings)

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        first, second, phrase = (lookup.rows([item[column] for item in items.texts]) for column in range(3))
        covered = (first >= 0) & (second >= 0)
        x, y = lookup.take(first), lookup.take(second)
        if self.of == "phrase":
            covered &= phrase >= 0
            composed = unit_rows(x) + unit_rows(y) if self.measure == "cosine" else intersection(x, y)
            x, y = lookup.take(phrase), composed
        similarity = self.compare(x, y)
        return Answers(covered, {"spearman": similarity, "pearson": similarity})

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        gold, similarity = items.gold[chosen], answers.values["spearman"][chosen]
        measures = {"spearman": spearman, "pearson": pearson}
        return {name: resampling.correlation(measure, gold, similarity) for name, measure in measures.items()}
