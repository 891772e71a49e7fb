"""Several labels per text: one logistic regression per label on the vector of the text.

Files: `multilabel/*.txt` or `*.tsv` with labels joined by commas, a space and a text per line (`grain,wheat The
harvest ...`; Reuters-90); parts as in `splits.py`. All regressions share one penalty, and a text gets every label whose
probability is above one threshold; both are selected on development texts for micro-F1, never on test texts.

    micro-f1    2 correct / (predicted + gold), over all texts and labels
    macro-f1    the mean over labels of the F1 of each, without labels that do not occur
    -majority   the control: every text has the most frequent label of training

The vector of a text is the mean of its known words, or the sentence vector of a teacher or encoder. An item is covered
if one of its words is known. Interval: percentile bootstrap over texts.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Estimate, Floats, Mask, Resampling, Rows
from stillvec.evaluation.supervised import LearntItems, Measure, estimates, quotient, ratio, share, single_thread
from stillvec.evaluation.tasks import Answers, Items, TextTask
from stillvec.heads.dataset_files import read_numbered
from stillvec.heads.linear_probe import PENALTIES, Scaling, fit_sigmoids, predict_sigmoids
from stillvec.heads.sequence_batches import Representation
from stillvec.heads.splits import Round, pool_parts

_QUICK = 1000  # training texts
_THRESHOLDS = np.arange(0.1, 0.71, 0.05)


@dataclass(frozen=True)
class Multilabel(TextTask):
    files: ClassVar[tuple[str, ...]] = ("multilabel", ".txt", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-words", "-majority")

    def read(self, path: Path) -> LearntItems:
        pool, n_tested, divided = pool_parts(path, _read_lines, itemgetter(0), _QUICK if self.quick else None)
        names = sorted({*chain.from_iterable(labels for labels, _ in pool)})
        if len(names) < 2:
            raise DatasetError.expected("two labels or more", len(names), path=path)
        number = {name: place for place, name in enumerate(names)}
        labels = tuple(tuple(number[label] for label in labels) for labels, _ in pool)
        texts = tuple((text,) for _, text in pool)
        gold = np.array([*map(len, labels[:n_tested])], np.float64)
        return LearntItems(texts[:n_tested], gold, (), texts[n_tested:], labels, divided)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, LearntItems)
        texts = [text for (text,) in items.all_texts]
        x = yield from share(0, 2, lookup.encode_texts_steps(texts))
        gold = gold_matrix(items)
        n = len(items)
        said = {name: np.zeros((n, gold.shape[1]), bool) for name in ("linear", "majority")}
        for number, split in enumerate(items.rounds, 1):
            with single_thread():
                said["linear"][split.test] = select_labels(x, gold, split)
            said["majority"][split.test, gold[split.both].sum(axis=0).argmax()] = True
            yield (1 + number / len(items.rounds)) / 2
        known = lookup.count_words(texts[:n])
        values: dict[str, NDArray[Any]] = {"known-words": known}
        return Answers(known[:, 0] > 0, values | {f"labels-{name}": labels for name, labels in said.items()})

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        assert isinstance(items, LearntItems)
        gold = gold_matrix(items)[: len(items)][chosen]
        measures: dict[str, Measure] = {}
        for model in ("linear", "majority"):
            said = answers.values[f"labels-{model}"][chosen]
            correct, named = said & gold, said.astype(np.float64) + gold
            measures[f"micro-f1-{model}"] = ratio(2.0 * correct.sum(axis=1), named.sum(axis=1))
            measures[f"macro-f1-{model}"] = partial(_macro_f1, correct=correct.astype(np.float64), named=named)
        known = answers.values["known-words"][chosen]
        return estimates(measures | {"known-words": ratio(known[:, 0], known[:, 1])}, len(chosen), resampling)


def select_labels(x: NDArray[np.float32], gold: Mask, split: Round) -> Mask:
    """The labels of the test texts of a round (n, k), with the penalty and the threshold that are best on dev."""
    scaling = Scaling.of(x[split.train])
    x_train, x_dev = scaling(x[split.train]), scaling(x[split.dev])
    best, weights = (-1.0, 0.0, 0.0), None
    for penalty in sorted(PENALTIES, reverse=True):  # warm start from the next stronger penalty
        weights = fit_sigmoids(x_train, gold[split.train], penalty, weights)
        likely = predict_sigmoids(x_dev, weights)
        for threshold in _THRESHOLDS.tolist():
            said = likely > threshold
            micro = 2 * float((said & gold[split.dev]).sum()) / max(1, int(said.sum() + gold[split.dev].sum()))
            best = max(best, (micro, penalty, threshold))
    scaling = Scaling.of(x[split.both])
    weights = fit_sigmoids(scaling(x[split.both]), gold[split.both], best[1], weights)
    return np.asarray(predict_sigmoids(scaling(x[split.test]), weights) > best[2])


def gold_matrix(items: LearntItems) -> Mask:
    """Which labels each text has, of all texts (n + m, k)."""
    n_labels = 1 + max(chain.from_iterable(items.labels))
    gold = np.zeros((len(items.labels), n_labels), bool)
    for at, labels in enumerate(items.labels):
        gold[at, list(labels)] = True
    return gold


def _macro_f1(weights: Floats, correct: Floats, named: Floats) -> Floats:
    """The mean F1 of the labels that occur, in each resample (R,)."""
    return np.asarray(np.nanmean(quotient(2 * (weights @ correct), weights @ named), axis=1))


def _read_lines(path: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    for line, joined, text in read_numbered(path):
        labels = tuple(joined.split(","))
        if not all(labels):
            raise DatasetError.expected("labels joined by commas", repr(joined[:40]), path=path, line=line)
        yield labels, text
