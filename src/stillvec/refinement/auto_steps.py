"""A chain chosen on development pairs: each kind of step is kept only if held-out pairs gain from it beyond the noise.

Three kinds are tried in turn, each on what the one before left: common directions out, another order of similarity,
and, where lexicons are given, retrofitting, with the development pairs taken out of the lexicon. Of each kind there are
several; which one is chosen on all folds of the pairs but one, and its gain in Spearman's ρ is measured on that one. It
is the mean over folds and files, with the 95% interval of a bootstrap over the held-out pairs; where that reaches down
to zero, the kind is left out, else what is best on all pairs is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.numerics import spearman
from stillvec.refinement.all_but_the_top import AllButTheTop
from stillvec.refinement.center import Center
from stillvec.refinement.graph_retrofit import GraphRetrofit
from stillvec.refinement.pair_correlation import known_pairs
from stillvec.refinement.retrofit import Retrofit
from stillvec.refinement.similarity_order import SimilarityOrder
from stillvec.refinement.steps import Step
from stillvec.vectors import WordVectors

Array = NDArray[Any]


class JudgedSets(NamedTuple):
    """One file of pairs, as far as the words are known."""

    left: Array  # rows (n,)
    right: Array  # rows (n,)
    gold: Array  # what people said (n,)
    fold: Array  # which fold holds the pair out (n,)


@dataclass(frozen=True)
class AutoSteps:
    SUMMARY: ClassVar[str] = "steps chosen on development pairs"

    pairs: tuple[str, ...]  # files, or folders of them: word, word, number
    lexicon: tuple[str, ...] = ()
    antonyms: tuple[str, ...] = ()
    folds: int = 5
    resamples: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        if self.folds < 2 or self.resamples < 40:
            raise UsageError("Choosing wants at least 2 folds and 40 resamples; give more.")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        steps = [step for step, facts in self.choose(vectors) if not facts.get("left_out")]
        for step in steps:
            vectors = step(vectors)
        return vectors if steps else vectors.with_matrix(np.array(vectors.matrix))

    def choose(self, vectors: WordVectors) -> Iterator[tuple[Step, dict[str, Any]]]:
        """The best step of each kind with its gain; `left_out` where that is inside the noise."""
        judged = self._judged(vectors)
        for kind in self._kinds(vectors.dim):
            before = _cosines(vectors, judged)
            tried = [_cosines(step(vectors), judged) for step in kind]
            gain, low, high = self._gain(judged, before, tried)
            scores = [np.mean([spearman(j.gold, c) for j, c in zip(judged, each, strict=True)]) for each in tried]
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

    def _judged(self, vectors: WordVectors) -> list[JudgedSets]:
        random = np.random.default_rng(self.seed)
        least = 4 * self.folds  # fewer would leave folds in which nothing can be ranked
        found = known_pairs(vectors.vocabulary, self.pairs, least)
        return [JudgedSets(*pairs, random.permutation(np.arange(len(pairs.gold)) % self.folds)) for pairs in found]

    def _gain(
        self, judged: list[JudgedSets], before: list[Array], tried: list[list[Array]]
    ) -> tuple[float, float, float]:
        """Of what is chosen on the other folds over nothing, on each fold: its mean, and the bounds of its 95%."""
        random = np.random.default_rng(self.seed)
        totals = np.zeros(1 + self.resamples)  # the pairs themselves, then resamples of them
        for fold in range(self.folds):
            inside = [np.flatnonzero(j.fold != fold) for j in judged]
            scores = [
                sum(float(spearman(j.gold[i], c[i])) for j, c, i in zip(judged, each, inside, strict=True))
                for each in tried
            ]
            chosen = tried[int(np.argmax(scores))]
            for pairs, plain, other in zip(judged, before, chosen, strict=True):
                held = np.flatnonzero(pairs.fold == fold)
                drawn = held[random.integers(0, len(held), (self.resamples, len(held)))]
                drawn = np.vstack([held, drawn])  # (1 + R, n)
                totals += spearman(pairs.gold[drawn], other[drawn]) - spearman(pairs.gold[drawn], plain[drawn])
        totals /= self.folds * len(judged)
        low, high = np.percentile(totals[1:], [2.5, 97.5])
        return float(totals[0]), float(low), float(high)


def _cosines(vectors: WordVectors, judged: list[JudgedSets]) -> list[Array]:
    """The cosines of each file's pairs (n,); 0 where a row has no direction."""
    found = []
    for pairs in judged:
        x, y = (np.asarray(vectors.matrix[rows], np.float64) for rows in (pairs.left, pairs.right))
        lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
        dots = np.einsum("nd,nd->n", x, y)
        found.append(np.divide(dots, lengths, out=np.zeros(len(x)), where=lengths > 0).round(12))
    return found
