"""Compounds: do the words of a literal compound have more in common? (Reddy et al. 2011; Bhat et al. 2020, table 11.)

The answer is the similarity of the two words; with `of=phrase`, that of the compound's own vector and its composition:
the sum of the words' unit vectors, or the intersection of feature tuples (Cordeiro et al. 2016). A teacher reads the
words and the compound as texts of their own. The metrics are Spearman's ρ and Pearson's r with the ratings. Files:
`compounds/*.tsv` with two words in the first column and how literal they are in the second. Interval: percentile
bootstrap over the compounds.
"""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Estimate, Resampling, Rows, pearson, spearman
from stillvec.evaluation.item_files import make_items
from stillvec.evaluation.tasks import Answers, ContextualTask, Items
from stillvec.evaluation.word_measure import MeasuredTask
from stillvec.heads.dataset_files import columns
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import Representation
from stillvec.numerics import unit_rows
from stillvec.refinement.fuzzy_sets import intersection

_WHAT = "two words and a number"


@dataclass(frozen=True)
class Compounds(MeasuredTask, ContextualTask):
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

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        columns = [*zip(*items.texts, strict=True)]  # the first words, the second ones and the compounds
        if isinstance(lookup, Lookup):
            rows = [lookup.rows(column) for column in columns]
            x, y, whole = (lookup.take(row) for row in rows)
            known = [row >= 0 for row in rows]
        else:
            encoded = yield from lookup.encode_texts_steps([text for column in columns for text in column])
            x, y, whole = encoded.reshape(3, len(items), -1)
            known = [np.any(matrix != 0, axis=1) for matrix in (x, y, whole)]
        covered = known[0] & known[1]
        if self.of == "phrase":
            covered &= known[2]
            composed = unit_rows(x) + unit_rows(y) if self.measure == "cosine" else intersection(x, y)
            x, y = whole, composed
        similarity = self.compare(x, y)
        return Answers(covered, {"spearman": similarity, "pearson": similarity})

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        gold, similarity = items.gold[chosen], answers.values["spearman"][chosen]
        measures = {"spearman": spearman, "pearson": pearson}
        return {name: resampling.correlation(measure, gold, similarity) for name, measure in measures.items()}
