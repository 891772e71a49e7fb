"""Sentence similarity: the cosine of two mean vectors against what people said (STS, Cer et al. 2017).

Every `sentences/*.csv`: sentence, sentence, number; of a dataset in parts (train, dev, test) only the test.
`spearman` and `pearson` are of the plain mean of the known words; `spearman-sif` and `pearson-sif` weigh each
word with a / (a + f), a = 1e-3 and f its frequency (Arora et al. 2017), where the vocabulary has counts. Their
paper's second step, to take out the first component of the sentences, is not done: it would make a sentence's
vector depend on the other sentences of the test. Interval: percentile bootstrap over the pairs.

A sentence is known if one of its words is; the policy for unknown words is for sentences without any.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.dataset_files import files_in, parse_scored_pairs, records
from stillvec.evaluation.intervals import Estimate, Resampling, pearson, spearman
from stillvec.evaluation.lookup import Lookup, cosines
from stillvec.evaluation.splits import part_of
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.vectors import WordVectors
from stillvec.vocabulary import WordMatcher

_MEASURES = {"spearman": spearman, "pearson": pearson, "spearman-sif": spearman, "pearson-sif": pearson}


@dataclass(frozen=True)
class Sentences(Task):
    a: float = 1e-3  # SIF's constant

    item_unit: ClassVar[Literal["word", "text"]] = "text"
    max_difference: ClassVar[float] = 2.0
    summary: ClassVar[str] = "correlations"

    def find(self, folder: Path) -> list[Path]:
        found = files_in(folder / "sentences", (".csv",))
        tested = {rest for path in found for rest, part in [part_of(path)] if part == "test"}
        return [path for path in found if part_of(path)[1] in ("", "test") or part_of(path)[0] not in tested]

    def read(self, path: Path) -> Items:
        return parse_scored_pairs(records(path), path, "a sentence, a sentence and a number")

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        texts = self.texts(items)
        used, frequencies = _select_used(lookup.vectors, texts)
        means = used.encode(texts)  # (2n, dim)
        seen = means if used.subwords is None else WordVectors(used.vocabulary, used.matrix).encode(texts)
        known = seen.any(axis=1).reshape(2, -1)
        values = {"spearman": _cosines(lookup, means)}
        values["pearson"] = values["spearman"]
        if lookup.vectors.vocabulary.counts.any():
            weights = (self.a / (self.a + frequencies)).astype(np.float32)
            weighted = WordVectors(used.vocabulary, used.matrix * weights[:, None], subwords=used.subwords)
            values["spearman-sif"] = values["pearson-sif"] = _cosines(lookup, weighted.encode(texts))
        return Answers(known[0] & known[1], values)

    def texts(self, items: Items) -> list[str]:
        """All first sentences, then all second ones (2n,)."""
        return [pair[side] for side in (0, 1) for pair in items.texts]

    def answer_with(self, encoded: NDArray[np.float32]) -> Answers:
        """The answers of whatever makes a vector of each of the `texts` itself (2n, dim)."""
        left, right = encoded.reshape(2, -1, encoded.shape[1])
        values = cosines(left, right)
        return Answers(np.ones(len(values), bool), {"spearman": values, "pearson": values})

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        gold = items.gold[chosen]
        return {
            metric: resampling.correlation(_MEASURES[metric], gold, values[chosen])
            for metric, values in answers.values.items()
        }


def _select_used(vectors: WordVectors, texts: list[str]) -> tuple[WordVectors, NDArray[np.float64]]:
    """The vectors and frequencies of the words that occur: weighing these needs no copy of a large matrix."""
    rows, _ = WordMatcher(vectors.vocabulary).match_rows(texts)
    rows = np.unique(rows[rows >= 0])
    return vectors.subset(vectors.words[row] for row in rows), vectors.vocabulary.frequencies()[rows]


def _cosines(lookup: Lookup, means: NDArray[np.float32]) -> NDArray[np.float64]:
    filled = np.where(means.any(axis=1, keepdims=True), means, lookup.filler)
    left, right = filled.reshape(2, -1, filled.shape[1])
    return cosines(left, right)
