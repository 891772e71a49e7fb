"""The mean over similarity datasets, of which some hold the same pairs (WordSim-353 and its two parts).

In each resample a pair of words has one weight, drawn from Poisson's distribution with mean 1 (the Poisson bootstrap;
Hanley & MacGibbon 2006), in every dataset that holds it and for every set of vectors. Were each dataset drawn by
itself, what they share would count as said twice, and the interval of the mean would be too narrow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError, suggest
from stillvec.evaluation.comparison import BootstrapSample
from stillvec.evaluation.datasets import datasets
from stillvec.evaluation.evaluation_report import Detail, Score, Unknown, Words
from stillvec.evaluation.intervals import Floats, Resampling, pearson, percentiles, ranks, spearman
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.similarity import Similarity
from stillvec.evaluation.tasks import Answers, Items
from stillvec.lexicons import as_pair
from stillvec.vectors import WordVectors

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class SimilarityResult:
    """A similarity dataset, what every set answered, and the items that count for it."""

    name: str
    items: Items
    answers: Mapping[str, Answers]  # by set
    scored: Mapping[str, Mask]  # set → (n,)

    def sides(self, of: str) -> tuple[Mask, Floats, Floats]:
        """What counts (n,), and the right answers and those of a set there (m,)."""
        chosen = self.scored[of]
        return chosen, self.items.gold[chosen], np.asarray(self.answers[of].values["spearman"], np.float64)[chosen]

    def value(self, of: str) -> float:
        _, gold, said = self.sides(of)
        return float(spearman(np.ones((1, len(gold))), gold, said)[0]) if len(gold) > 1 else np.nan


@dataclass(frozen=True)
class Mean:
    """The mean over datasets of each set, and of its resamples."""

    parts: Sequence[SimilarityResult]
    drawn: Mapping[str, BootstrapSample]  # by set
    pairs: Mapping[str, int]  # different pairs that count, by set

    def scores(self, policy: Unknown, words: Words) -> Iterator[Score]:
        everything = len({*_keys(self.parts)})
        for name, each in self.drawn.items():
            details = tuple(
                Detail(part.name, part.value(name), len(part.items), int(part.scored[name].sum()))
                for part in self.parts
            )
            yield Score(
                name,
                "similarity",
                f"mean of {len(self.parts)}",
                "spearman",
                each.value,
                *percentiles([each.resampled]),
                n_items=everything,
                n_covered=self.pairs[name],
                unknown=policy,
                words=words,
                details=details,
            )


def mean_of(asked: Sequence[SimilarityResult], resampling: Resampling, least: int = 2) -> Mean | None:
    """The mean over those datasets on which every set has a value; None if there are fewer than `least`."""
    parts = [each for each in asked if all(np.isfinite(each.value(name)) for name in each.answers)]
    if len(parts) < least:
        return None
    places = {pair: at for at, pair in enumerate(dict.fromkeys(_keys(parts)))}
    columns = [np.array([places[pair] for pair in _pairs(part)]) for part in parts]
    names = [*parts[0].answers]
    found: dict[str, list[Floats]] = {name: [] for name in names}
    for weights in resampling.poisson(len(places)):
        sums = {name: np.zeros(len(weights)) for name in names}
        for part, column in zip(parts, columns, strict=True):
            right: dict[bytes, Floats] = {}  # ranks of the right answers, which most sets share
            for name in names:
                chosen, gold, said = part.sides(name)
                drawn = weights[:, column[chosen]]
                key = chosen.tobytes()
                if key not in right:
                    right[key] = ranks(drawn, gold)
                sums[name] += pearson(drawn, right[key], ranks(drawn, said))
        for name in names:
            found[name].append(sums[name] / len(parts))
    values = {name: float(np.mean([part.value(name) for part in parts])) for name in names}
    drawn_of = {
        name: BootstrapSample(values[name], np.concatenate([np.zeros(0), *found[name]]), np.zeros(0)) for name in names
    }
    counted = {
        name: len({*np.concatenate([c[p.scored[name]] for p, c in zip(parts, columns, strict=True)]).tolist()})
        for name in names
    }
    return Mean(parts, drawn_of, counted)


class Difference(NamedTuple):
    """How much better the first is; the two differ, at 95%, where `low` and `high` have one sign."""

    value: float
    low: float
    high: float


def paired_difference(
    a: WordVectors,
    b: WordVectors,
    data: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """The mean of Spearman's ρ over similarity datasets for `a`, less that for `b`; `names` chooses some.

    Each resample draws the same pairs of words for both, so that what is hard for both cancels.
    """
    found = {dataset.name: dataset for dataset in datasets(data, ["similarity"])}
    for name in names or ():
        if name not in found:
            raise UsageError(f"There is no similarity dataset {name!r}; {suggest(name, found)}")
    task, lookups = Similarity(), {"a": Lookup(a), "b": Lookup(b)}
    asked = []
    for name in names or found:
        items = task.read(found[name].path)
        answers = {of: task.answer(lookup, items) for of, lookup in lookups.items()}
        both = np.logical_and(*(each.covered for each in answers.values()))
        asked.append(SimilarityResult(name, items, answers, dict.fromkeys(answers, both)))
    mean = mean_of(asked, Resampling(resamples, seed), least=1)
    if mean is None:
        raise UsageError("The two sets of vectors know no two pairs of a similarity dataset in common.")
    first, second = mean.drawn["a"], mean.drawn["b"]
    return Difference(first.value - second.value, *percentiles([first.resampled - second.resampled]))


def _pairs(part: SimilarityResult) -> Iterator[tuple[str, str]]:
    return (as_pair(*texts[:2]) for texts in part.items.texts)


def _keys(parts: Sequence[SimilarityResult]) -> Iterator[tuple[str, str]]:
    return (pair for part in parts for pair in _pairs(part))
