"""Probing: which properties of a sentence a linear probe reads from its pooled vectors (Miaschi & Dell'Orletta 2020).

Every `tagging/*.conllu` gives sentences and their profile (`profile.py`: length, depth, shares of parts of speech and
relations, tense, order, ...). A ridge regression predicts each number from the mean and the sum of the known words'
vectors, its penalty chosen on development sentences; the score is Spearman's ρ on test sentences, the mean over the
numbers of a group. The paper has a support vector regression in its place; here many numbers share one decomposition.

Most of such a score is which words there are and how many, so beside every figure stand `-random`, the same probe over
a random vector a word of the same dimension, and `-length`, a probe that sees nothing but the length. What vectors know
is what they have more. `each` tells every number by itself.

An item is a sentence, covered if one of its words is known. Interval: percentile bootstrap over sentences, of the ranks
among all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.evaluation.intervals import Estimate, Floats, Resampling
from stillvec.evaluation.linear_probe import PENALTIES, RidgePath
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.profile import GROUPS, table
from stillvec.evaluation.sequence_batches import PADDING, UNKNOWN, Sequences, tokens_as_sequences
from stillvec.evaluation.splits import Round, pool_parts, whole_datasets
from stillvec.evaluation.supervised import LearntItems, estimates
from stillvec.evaluation.tasks import Answers, CostlyTask, Items
from stillvec.evaluation.treebank import conllu

_QUICK = 3000  # training sentences
_EMPTY = np.zeros((0, 0))


@dataclass(frozen=True)
class ProfiledItems(LearntItems):
    names: tuple[str, ...] = ()  # (f,) group:name
    numbers: NDArray[np.float64] = field(default_factory=lambda: _EMPTY)  # (n + m, f)


@dataclass(frozen=True)
class Probing(CostlyTask):
    pooling: str = "mean+sum"  # of mean, sum, min, max, first, last
    each: bool = False  # every number of the profile by itself

    max_difference: ClassVar[float] = 2.0
    controls: ClassVar[tuple[str, ...]] = ("-length", "-random")

    def __post_init__(self) -> None:
        for name in self.pooling.split("+"):
            if name not in POOLINGS:
                raise UsageError.unknown("pooling", name, POOLINGS)

    def find(self, folder: Path) -> list[Path]:
        return whole_datasets(folder / "tagging", (".conllu",))

    def read(self, path: Path) -> ProfiledItems:
        pool, tested, divided = pool_parts(path, conllu, lambda _: "", _QUICK if self.quick else None)
        words = tuple(tuple(token.form for token in sentence) for sentence in pool)
        names, numbers = table(pool)
        lengths = np.array([len(each) for each in words[:tested]], np.float64)
        return ProfiledItems(words[:tested], lengths, (), words[tested:], (), divided, names, numbers)

    def answer_steps(self, lookup: Lookup, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, ProfiledItems)
        sequences = tokens_as_sequences(lookup, items.all_texts)
        poolings = self.pooling.split("+")
        control = randomize(sequences)
        inputs: dict[str, Callable[[], NDArray[Any]]] = {"length": lambda: sequences.lengths[:, None]}
        inputs |= {name: partial(POOLINGS[name], sequences) for name in poolings}
        inputs |= {f"{name}-random": partial(POOLINGS[name], control) for name in poolings}
        values: dict[str, NDArray[Any]] = {}
        for number, (name, read) in enumerate(inputs.items(), 1):
            x = read()
            values[name] = np.zeros((len(items), items.numbers.shape[1]), np.float32)
            for split in items.rounds:
                values[name][split.test] = fit_probe(x, items.numbers, split)
            yield number / len(inputs)
        return Answers(sequences.known[: len(items)] > 0, values)

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        assert isinstance(items, ProfiledItems)
        gold = _rank_columns(items.numbers[chosen])
        group = np.array([name.partition(":")[0] for name in items.names])
        measures: dict[str, Callable[[Floats], Floats]] = {}
        inputs = {name: _rank_columns(values[chosen]) for name, values in answers.values.items()}
        for place, wanted in {"all": group != "", **{each: group == each for each in GROUPS}}.items():
            for name, ranks in inputs.items():
                measures[f"{place}-{name}"] = partial(_mean_r, ranks[:, wanted], gold[:, wanted])
        for at, feature in enumerate(items.names if self.each else ()):
            for name, ranks in inputs.items():
                alone = partial(_mean_r, ranks[:, at : at + 1], gold[:, at : at + 1])
                measures[f"{feature.partition(':')[2]}-{name}"] = alone
        return estimates(measures, len(chosen), resampling)


def fit_probe(x: NDArray[Any], y: Floats, split: Round) -> Floats:
    """Ridge predictions for the test items (n, f); each number has the penalty that does best on dev."""
    path = RidgePath(x[split.train], y[split.train])
    missed = [np.square(path.predict(x[split.dev], each) - y[split.dev]).sum(axis=0) for each in PENALTIES]
    best = np.argmin(missed, axis=0)  # (f,)
    path = RidgePath(x[split.both], y[split.both])
    found = np.zeros((len(split.test), y.shape[1]))
    for at, penalty in enumerate(PENALTIES):
        if (best == at).any():
            found[:, best == at] = path.predict(x[split.test], penalty)[:, best == at]
    return found


def randomize(sequences: Sequences, seed: int = 0) -> Sequences:
    """The same texts with a random vector a word."""
    drawn = np.random.default_rng(seed).standard_normal(sequences.table.shape, np.float32)
    drawn[[PADDING, UNKNOWN]] = 0
    return replace(sequences, table=drawn)


def _edge(sequences: Sequences, last: bool) -> NDArray[np.float32]:
    """The vector of the first or the last known word (n, dim)."""
    at = np.flatnonzero(sequences.ids != UNKNOWN)
    order = at if last else at[::-1]  # of equal places the last one written stays
    rows = np.full(len(sequences), PADDING)
    rows[sequences.text[order]] = sequences.ids[order]
    return np.asarray(sequences.table[rows])


def _extreme(sequences: Sequences, best: np.ufunc) -> NDArray[np.float32]:
    """The largest or smallest number of each column among the known words (n, dim)."""
    found = np.zeros((len(sequences), sequences.table.shape[1]), np.float32)
    kept = sequences.ids != UNKNOWN
    ids, known = sequences.ids[kept], sequences.known
    ends = np.cumsum(known)
    for at in np.flatnonzero(known):
        found[at] = best.reduce(sequences.table[ids[ends[at] - known[at] : ends[at]]], axis=0)
    return found


POOLINGS: dict[str, Callable[[Sequences], NDArray[np.float32]]] = {
    "mean": Sequences.means,
    "sum": Sequences.sums,
    "min": partial(_extreme, best=np.minimum),
    "max": partial(_extreme, best=np.maximum),
    "first": partial(_edge, last=False),
    "last": partial(_edge, last=True),
}


def _rank_columns(x: NDArray[Any]) -> Floats:
    """Ranks of each column (n, f), equal values sharing their mean rank, less the mean of all."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(x, axis=0) - (len(x) + 1) / 2) if len(x) else np.zeros(x.shape)


def _mean_r(x: Floats, y: Floats, weights: Floats) -> Floats:
    """The mean over columns of Pearson's r in each resample (R,); 0 where one side does not vary."""
    n = weights.sum(axis=1, keepdims=True)
    mean_x, mean_y = weights @ x / n, weights @ y / n  # (R, f)
    along = weights @ (x * y) / n - mean_x * mean_y
    spread = (weights @ (x * x) / n - mean_x**2) * (weights @ (y * y) / n - mean_y**2)
    live = spread > 1e-9
    return np.asarray(
        np.divide(along, np.sqrt(np.where(live, spread, 1)), out=np.zeros_like(along), where=live).mean(axis=1)
    )
