"""Is one set of vectors better than another? The paired bootstrap, on the items that both know."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stillvec.errors import CallError
from stillvec.evaluate.datasets import datasets
from stillvec.evaluate.intervals import Resampling, percentiles, spearman
from stillvec.evaluate.lookup import Lookup
from stillvec.evaluate.similarity import Similarity
from stillvec.registry import nearest_known
from stillvec.vectors import WordVectors


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

    Each resample draws the same pairs of words for both, dataset by dataset, so that what is hard for both
    cancels.
    """
    found = {dataset.name: dataset for dataset in datasets(data, ["similarity"])}
    for name in names or ():
        if name not in found:
            raise CallError(f"There is no similarity dataset {name!r}; {nearest_known(name, found)}")
    task, lookups = Similarity(), (Lookup(a), Lookup(b))
    resampling = Resampling(resamples, seed)
    values, drawn = [], []
    for stream, name in enumerate(names or found):
        items = task.read(found[name].path)
        first, second = (task.answer(lookup, items) for lookup in lookups)
        both = first.covered & second.covered
        if both.sum() < 2:
            continue
        gold = items.gold[both]
        x, y = (answers.values["spearman"][both] for answers in (first, second))
        blocks = [np.ones((1, len(gold))), *resampling.weights(len(gold), stream)]
        differences = np.concatenate([spearman(w, gold, x) - spearman(w, gold, y) for w in blocks])
        values.append(differences[0])
        drawn.append(differences[1:])
    if not values:
        raise CallError("The two sets of vectors know no two pairs of a similarity dataset in common.")
    return Difference(float(np.mean(values)), *percentiles([np.mean(drawn, axis=0)]))
