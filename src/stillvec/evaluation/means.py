"""The mean over similarity datasets, some of which contain the same pairs (WordSim-353 and its two parts).

In each resample a word pair has one weight, drawn from a Poisson distribution with mean 1 (the Poisson bootstrap;
Hanley & MacGibbon 2006), in every dataset that contains it and for every set of vectors. If each dataset was resampled
separately, shared pairs would count as independent evidence, and the interval of the mean would be too narrow.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from stillvec.errors import UsageError
from stillvec.evaluation.comparison import BootstrapSample, Place
from stillvec.evaluation.datasets import find_datasets
from stillvec.evaluation.evaluation_report import Detail, OovPolicy, Score, Words
from stillvec.evaluation.intervals import Estimate, Floats, Mask, Resampling, pearson, percentiles, ranks, spearman
from stillvec.evaluation.similarity import Similarity
from stillvec.evaluation.tasks import Answers, Items
from stillvec.heads.lookup import Lookup
from stillvec.lexicons import as_pair
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class SimilarityResult:
    """A similarity dataset, the answers of every set, and the items that count for it."""

    name: str
    items: Items
    answers: Mapping[str, Answers]  # by set
    scored: Mapping[str, Mask]  # set → (n,)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [as_pair(*texts[:2]) for texts in self.items.texts]

    def sides(self, name: str) -> tuple[Mask, Floats, Floats]:
        """The items that count (n,), and their ratings and the cosines of a set (m,)."""
        chosen = self.scored[name]
        cosines = np.asarray(self.answers[name].values["spearman"], np.float64)
        return chosen, self.items.gold[chosen], cosines[chosen]

    def value(self, name: str) -> float:
        _, gold, cosines = self.sides(name)
        return float(spearman(np.ones((1, len(gold))), gold, cosines)[0]) if len(gold) > 1 else np.nan


@dataclass(frozen=True)
class Mean:
    """The mean over datasets of each set, and of its resamples."""

    parts: Sequence[SimilarityResult]
    samples: Mapping[str, BootstrapSample]  # by set
    n_pairs: Mapping[str, int]  # distinct pairs that count, by set

    @property
    def place(self) -> Place:
        return "similarity", f"mean of {len(self.parts)}", "spearman"

    def scores(self, policy: OovPolicy, words: Words) -> Iterator[Score]:
        n_items = len({pair for part in self.parts for pair in part.pairs})
        for name, sample in self.samples.items():
            values = sample.value, *percentiles([sample.resampled])
            counted = [(part, int(part.scored[name].sum())) for part in self.parts]
            details = (Detail(part.name, part.value(name), len(part.items), n) for part, n in counted)
            yield Score(name, *self.place, *values, n_items, self.n_pairs[name], policy, words, tuple(details))


def average_datasets(results: Sequence[SimilarityResult], resampling: Resampling, min_datasets: int = 2) -> Mean | None:
    """The mean over the datasets on which every set has a value; None if there are fewer than `min_datasets`."""
    parts = [part for part in results if all(np.isfinite(part.value(name)) for name in part.answers)]
    if len(parts) < min_datasets:
        return None
    numbers = {pair: at for at, pair in enumerate(dict.fromkeys(pair for part in parts for pair in part.pairs))}
    columns = [np.array([numbers[pair] for pair in part.pairs]) for part in parts]
    names = [*parts[0].answers]
    blocks: dict[str, list[Floats]] = {name: [np.zeros(0)] for name in names}
    for weights in resampling.poisson(len(numbers)):
        sums = {name: np.zeros(len(weights)) for name in names}
        for part, column in zip(parts, columns, strict=True):
            gold_ranks: dict[bytes, Floats] = {}  # most sets share them
            for name in names:
                chosen, gold, cosines = part.sides(name)
                weight = weights[:, column[chosen]]
                key = chosen.tobytes()
                if key not in gold_ranks:
                    gold_ranks[key] = ranks(weight, gold)
                sums[name] += pearson(weight, gold_ranks[key], ranks(weight, cosines))
        for name in names:
            blocks[name].append(sums[name] / len(parts))
    values = {name: float(np.mean([part.value(name) for part in parts])) for name in names}
    samples = {name: BootstrapSample(values[name], np.concatenate(blocks[name]), np.zeros(0)) for name in names}
    n_pairs = {
        name: len({*chain.from_iterable(c[p.scored[name]].tolist() for p, c in zip(parts, columns, strict=True))})
        for name in names
    }
    return Mean(parts, samples, n_pairs)


class Difference(Estimate):
    """How much better the first set is; significant at 5% if `low` and `high` have the same sign."""


def mean_difference(
    a: WordVectors,
    b: WordVectors,
    data: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """The mean of Spearman's ρ over similarity datasets for `a` minus that for `b`; `names` selects datasets.

    Each resample draws the same word pairs for both, so that what is hard for both cancels.
    """
    task, lookups = Similarity(), {"a": Lookup(a), "b": Lookup(b)}
    datasets = {dataset.name: dataset for dataset in find_datasets(data, {"similarity": task}, named=True, only=names)}
    results = []
    for name in names or datasets:
        items = datasets[name].read(task, ())
        answers = {side: task.answer(lookup, items) for side, lookup in lookups.items()}
        both = np.logical_and(answers["a"].covered, answers["b"].covered)
        results.append(SimilarityResult(name, items, answers, dict.fromkeys(answers, both)))
    mean = average_datasets(results, Resampling(resamples, seed), min_datasets=1)
    if mean is None:
        raise UsageError("No similarity dataset has two pairs that both sets of vectors cover.", code="no-common-pairs")
    first, second = mean.samples["a"], mean.samples["b"]
    return Difference(first.value - second.value, *percentiles([first.resampled - second.resampled]))
