"""Choose a chain of steps by cross-validation on development pairs.

Three kinds of step are tried in order, each on the result of the previous one: removing common directions, another
order of similarity and, if lexicons are given, retrofitting without the edges of development pairs. The candidate of a
kind is selected on all folds but one and its gain in Spearman's ρ measured on that fold. The gain is the mean over
folds and files, with a 95% bootstrap interval over the held-out pairs. A kind whose interval includes zero is left out;
otherwise the candidate that is best on all pairs is used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import cosines, spearman
from stillvec.refinement.all_but_the_top import AllButTheTop
from stillvec.refinement.center import Center
from stillvec.refinement.graph_retrofit import GraphRetrofit
from stillvec.refinement.retrofit import Retrofit
from stillvec.refinement.select_dims import RatedPairs, read_known_pairs
from stillvec.refinement.similarity_order import SimilarityOrder
from stillvec.refinement.steps import Step
from stillvec.registry import check_least
from stillvec.vectors import WordVectors

Array = NDArray[Any]


@dataclass(frozen=True)
class JudgedSets(RatedPairs):
    fold: Array  # fold that the pair is held out in (n,)


@dataclass(frozen=True)
class AutoSteps:
    SUMMARY: ClassVar[str] = "steps chosen on development pairs"

    pairs: tuple[str, ...]  # files or folders of files: word, word, number
    lexicon: tuple[str, ...] = ()
    antonyms: tuple[str, ...] = ()
    folds: int = 5
    resamples: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        check_least(self, folds=2, resamples=40)

    def __call__(self, vectors: WordVectors) -> WordVectors:
        steps = [step for step, facts in self.choose(vectors) if not facts.get("left_out")]
        for step in steps:
            vectors = step(vectors)
        return vectors if steps else vectors.with_matrix(np.array(vectors.matrix))

    def choose(self, vectors: WordVectors) -> Iterator[tuple[Step, dict[str, Any]]]:
        """The best step of each kind and its gain; `left_out` where the interval of the gain includes zero."""
        judged = self._split_pairs(vectors)
        for kind in self._kinds(vectors.dim):
            before = _cosines(vectors, judged)
            tried = [_cosines(step(vectors), judged) for step in kind]
            gain, low, high = self._gain(judged, before, tried)
            scores = [np.mean([spearman(j.gold, c) for j, c in zip(judged, cosines, strict=True)]) for cosines in tried]
            best = kind[int(np.argmax(scores))]
            facts: dict[str, Any] = {"chosen_by": "auto", "gain": {"gain": gain, "low": low, "high": high}}
            if low > 0:
                vectors = best(vectors)
            yield best, facts | ({} if low > 0 else {"left_out": True})

    def _kinds(self, dim: int) -> list[list[Step]]:
        kinds: list[list[Step]] = [
            [Center(), *(AllButTheTop(count) for count in (1, 3, 10) if count < dim)],
            [SimilarityOrder(alpha) for alpha in (-0.4, -0.25, -0.1, 0.15)],
        ]
        if self.lexicon:
            pulls: list[Step] = [Retrofit(self.lexicon, without=self.pairs)]
            for antonyms, repel in ((), 0.0), *(((self.antonyms, r) for r in (0.1, 0.3)) if self.antonyms else ()):
                pulls.append(GraphRetrofit(self.lexicon, antonyms, repel=repel, without=self.pairs))
            kinds.append(pulls)
        return kinds

    def _split_pairs(self, vectors: WordVectors) -> list[JudgedSets]:
        random = np.random.default_rng(self.seed)
        least = 4 * self.folds  # a fold needs several pairs for a rank correlation
        files = read_known_pairs(vectors.vocabulary, self.pairs, least)
        return [JudgedSets(**vars(f), fold=random.permutation(np.arange(len(f.gold)) % self.folds)) for f in files]

    def _gain(self, judged: list[JudgedSets], before: list[Array], tried: list[list[Array]]) -> tuple[float, ...]:
        """Mean held-out gain of the candidate selected on the other folds, and its 95% interval."""
        random = np.random.default_rng(self.seed)
        totals = np.zeros(1 + self.resamples)  # the pairs, then their resamples
        for fold in range(self.folds):
            inside = [np.flatnonzero(j.fold != fold) for j in judged]
            scores = [
                sum(float(spearman(j.gold[i], c[i])) for j, c, i in zip(judged, cosines, inside, strict=True))
                for cosines in tried
            ]
            chosen = tried[int(np.argmax(scores))]
            for pairs, plain, other in zip(judged, before, chosen, strict=True):
                test = np.flatnonzero(pairs.fold == fold)
                resamples = test[random.integers(0, len(test), (self.resamples, len(test)))]
                rows = np.vstack([test, resamples])  # (1 + R, n)
                totals += spearman(pairs.gold[rows], other[rows]) - spearman(pairs.gold[rows], plain[rows])
        totals /= self.folds * len(judged)
        low, high = np.percentile(totals[1:], [2.5, 97.5])
        return float(totals[0]), float(low), float(high)


def _cosines(vectors: WordVectors, judged: list[JudgedSets]) -> list[Array]:
    """The cosines of each file's pairs (n,); 0 for zero vectors."""
    return [cosines(vectors.matrix[pairs.left], vectors.matrix[pairs.right]) for pairs in judged]
