"""Information: how much of a label's uncertainty the cluster of a word's vector removes (after Tutek & Šnajder 2020).

Every `tagging/*.conllu`, all its parts: the vectors of the known words, each as often as it stands there, are put into
`k` clusters, and I(cluster; label) / H(label) is told for the part of speech and the relation. Nothing is trained on
labels, so nothing can be learnt by heart. Beside each figure (`-vectors`) stand

    -random    the same with a random vector a word: what so many clusters of frequent words give anyway
    -words     the same with a cluster a word: what the word itself says, which no vector of it can pass

`mutual_information.py` takes the bias off, and measures two sets of vectors, or a model's layer and its input, too.

An item is a sentence, covered if one of its words is known. Interval: 1.96 standard deviations of a bootstrap over
sentences; its percentiles would be too high, since a resample repeats pairs and so says more than it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.evaluation.intervals import Estimate, Floats, Resampling
from stillvec.evaluation.labels import KINDS, kind_labels, labelled_words
from stillvec.evaluation.lookup import Lookup, unit
from stillvec.evaluation.mutual_information import bias, clusters, entropy, information
from stillvec.evaluation.probing import randomized
from stillvec.evaluation.sequence_batches import UNKNOWN, tokens_as_sequences
from stillvec.evaluation.splits import Rows, whole_datasets
from stillvec.evaluation.supervised import LearntItems
from stillvec.evaluation.tasks import Answers, CostlyTask, Items

_QUICK = 3000  # training sentences
_RESAMPLES = 200  # a table of words and labels is made anew for each


@dataclass(frozen=True)
class MutualInformation(CostlyTask):
    k: int = 100  # clusters

    controls: ClassVar[tuple[str, ...]] = ("-random", "-words")

    def __post_init__(self) -> None:
        if self.k < 2:
            raise UsageError(f"At least two clusters are wanted, and {self.k} came.")

    def find(self, folder: Path) -> list[Path]:
        return whole_datasets(folder / "tagging", (".conllu",))

    def read(self, path: Path) -> LearntItems:
        items = labelled_words(path, _QUICK if self.quick else None)
        every = items.all_texts
        return LearntItems(every, np.array([*map(len, every)], np.float64), (), (), items.labels)

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        assert isinstance(items, LearntItems)
        sequences = tokens_as_sequences(lookup, items.texts)
        often = np.bincount(sequences.ids, minlength=len(sequences.table)).astype(np.float64)
        often[UNKNOWN] = often[UNKNOWN] if lookup.oov == "mean" else 0
        k, tries = min(self.k, max(1, int((often > 0).sum()))), 1 if self.quick else 3
        words = np.arange(len(often))
        kept = np.flatnonzero(often)
        values: dict[str, Rows] = {}
        for name, table in {"vectors": sequences.table, "random": randomized(sequences).table}.items():
            place = np.zeros(len(often), np.int64)
            if len(kept):
                place[kept] = clusters(unit(table[kept]), k, often[kept], tries=tries)
            values[f"cluster-{name}"] = place[sequences.ids]
        values["cluster-words"] = words[sequences.ids]
        values["kept"] = (often > 0)[sequences.ids].astype(np.int64)
        return Answers(sequences.known > 0, values)

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        assert isinstance(items, LearntItems)
        sentence = np.repeat(np.arange(len(items)), items.gold.astype(np.int64))
        kept = answers.values["kept"]
        measures = {}
        for at, kind in enumerate(KINDS[:2]):
            labels = kind_labels(items, at)
            for name in ("vectors", "random", "words"):
                said = answers.values[f"cluster-{name}"]
                measures[f"{kind}-{name}"] = partial(_shares, said, labels, kept, sentence, chosen)
        few = Resampling(min(_RESAMPLES, resampling.resamples), resampling.seed)
        return {name: _estimate(measure, len(chosen), few) for name, measure in measures.items()}


def _estimate(measure: Callable[[Floats], Floats], n: int, resampling: Resampling) -> Estimate:
    """The value and 1.96 standard deviations of its resamples to each side."""
    if not n:
        return Estimate(np.nan, np.nan, np.nan)
    value = float(measure(np.ones((1, n)))[0])
    drawn = np.concatenate([np.zeros(0), *(measure(weights) for weights in resampling.weights(n))])
    half = 1.96 * float(drawn.std(ddof=1)) if len(drawn) > 1 else np.nan
    return Estimate(value, value - half, value + half)


def _shares(said: Rows, labels: Rows, kept: Rows, sentence: Rows, chosen: Rows, weights: Floats) -> Floats:
    """I / H(label) in each resample of the chosen sentences (R,), bias taken off; NaN where there is one label."""
    width = int(labels.max()) + 1
    cell, size = said * width + labels, (int(said.max()) + 1) * width
    found = np.full(len(weights), np.nan)
    for number, row in enumerate(weights):
        drawn = np.bincount(chosen, row, minlength=int(sentence.max()) + 1)[sentence] * kept
        joint = np.bincount(cell, drawn, minlength=size).reshape(-1, width)
        h = entropy(joint.sum(axis=0)) if joint.any() else 0.0
        found[number] = (information(joint) - bias(joint)) / h if h else np.nan
    return found
