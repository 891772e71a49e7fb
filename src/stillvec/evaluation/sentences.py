"""Sentence similarity: cosines of mean word vectors against human ratings (STS, Cer et al. 2017).

Data: `sentences/*.csv` with columns sentence, sentence, rating; of a dataset split into train, dev and test, only the
test file. `spearman` and `pearson` use the unweighted mean of the known words. `spearman-sif` and `pearson-sif` weight
each word by a / (a + f), with a = 1e-3 and word frequency f (Arora et al. 2017), if the vocabulary has counts; what the
rows contain of such a weight (`additive`, `--for sentences`, the step `sif`) is divided out. The
second step of that paper, removing the first principal component of the sentences, is omitted: a sentence vector would
depend on the other test sentences. A teacher has its own sentence vectors. Interval: percentile bootstrap over pairs.

A sentence is known if at least one of its words is known; the OOV policy applies to the other sentences.
"""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows, pearson, spearman
from stillvec.evaluation.item_files import parse_scored_pairs
from stillvec.evaluation.tasks import Answers, ContextualTask, Items
from stillvec.files.path_names import files_in
from stillvec.heads.dataset_files import records
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import Representation
from stillvec.heads.splits import part_of
from stillvec.numerics import cosines
from stillvec.refinement.sif import weigh_words
from stillvec.vectors import WordVectors
from stillvec.vocabulary import WordMatcher

_MEASURES = {"spearman": spearman, "pearson": pearson, "spearman-sif": spearman, "pearson-sif": pearson}


@dataclass(frozen=True)
class Sentences(ContextualTask):
    a: float = 1e-3  # constant of the SIF weights

    item_unit: ClassVar[Literal["word", "text"]] = "text"
    max_difference: ClassVar[float] = 2.0
    summary: ClassVar[str] = "correlations"
    takes_encoders: ClassVar[bool] = True

    def find(self, folder: Path) -> list[Path]:
        paths = files_in(folder / "sentences", (".csv",))
        tested = {rest for path in paths for rest, part in [part_of(path)] if part == "test"}
        return [path for path in paths if part_of(path)[1] in ("", "test") or part_of(path)[0] not in tested]

    def read(self, path: Path) -> Items:
        return parse_scored_pairs(records(path), path, "a sentence, a sentence and a number")

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        if isinstance(lookup, Lookup):
            return self._answer_words(lookup, items)
        return self.answer_with((yield from lookup.encode_texts_steps(self.texts(items))))

    def _answer_words(self, lookup: Lookup, items: Items) -> Answers:
        texts, vectors = self.texts(items), lookup.vectors
        rows, _ = WordMatcher(vectors.vocabulary).match_rows(texts)
        rows = np.unique(rows[rows >= 0])  # weighting a subset avoids a copy of the full matrix
        used = vectors.subset(vectors.words[row] for row in rows)
        means = used.encode(texts)  # (2n, dim)
        seen = means if used.subwords is None else WordVectors(used.vocabulary, used.matrix).encode(texts)
        known = seen.any(axis=1).reshape(2, -1)
        values = {"spearman": _cosines(lookup, means)}
        values["pearson"] = values["spearman"]
        if vectors.vocabulary.counts.any():
            weights = weigh_words(vectors, self.a)[rows]
            weighted = WordVectors(used.vocabulary, used.matrix * weights[:, None], subwords=used.subwords)
            values["spearman-sif"] = values["pearson-sif"] = _cosines(lookup, weighted.encode(texts))
        return Answers(known[0] & known[1], values)

    def texts(self, items: Items) -> list[str]:
        """First sentences of all pairs, then second sentences (2n,)."""
        return [pair[side] for side in (0, 1) for pair in items.texts]

    def answer_with(self, encoded: NDArray[np.float32]) -> Answers:
        """Answers of a sentence encoder, given its vectors of the `texts` (2n, dim)."""
        left, right = encoded.reshape(2, -1, encoded.shape[1])
        values = cosines(left, right)
        known = encoded.any(axis=1).reshape(2, -1)
        return Answers(known[0] & known[1], {"spearman": values, "pearson": values})

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        gold, values = items.gold[chosen], answers.values
        return {name: resampling.correlation(_MEASURES[name], gold, values[name][chosen]) for name in values}


def _cosines(lookup: Lookup, means: NDArray[np.float32]) -> Floats:
    filled = np.where(means.any(axis=1, keepdims=True), means, lookup.filler)
    left, right = filled.reshape(2, -1, filled.shape[1])
    return cosines(left, right)
