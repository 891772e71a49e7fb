"""Sentence classification by a convolutional network and by a linear probe of the mean vector.

Files: `classification/*.txt` or `*.tsv` with a label, a space and a text per line (MR, CR, SUBJ, MPQA, TREC, SST-5);
lines that are not UTF-8 are read as Latin-1. `name.test.txt` needs `name.train.txt` and may have `name.dev.txt`; a
single file is cross-validated. `cnn` is the protocol of Gupta & Jaggi (2021), see `networks.py` and
`network_training.py`; `linear` is logistic regression on the vector of the text (the mean of the known words, or the
sentence vector of a teacher or encoder), its penalty selected on development items. Encoders have no `cnn`. Vectors are
not trained unless `tuned` (only `cnn`); the network reads all of them times one factor, so that one learning rate suits
all sets.

An item is covered if one of its words is known; `known-words` is the share of known words. OOV words in a text have the
vector of the policy in the network and are left out of the mean. Values are means over seeds; `-sd` is the standard
deviation over seeds. Interval: percentile bootstrap over items.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.dataset_files import read_labelled
from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows
from stillvec.evaluation.linear_probe import predict, select_logistic
from stillvec.evaluation.sequence_batches import Representation
from stillvec.evaluation.splits import pool_parts
from stillvec.evaluation.supervised import (
    LearntItems,
    beside,
    estimates,
    ratio,
    resolve_network_device,
    share,
    single_thread,
    spread,
)
from stillvec.evaluation.tasks import Answers, Items, TokenTask

_QUICK = 2000  # training texts


@dataclass(frozen=True)
class Classification(TokenTask):
    model: Literal["both", "cnn", "linear"] = "both"
    seeds: int = 3
    tuned: bool = False
    device: Literal["auto", "cpu", "cuda"] = "auto"

    files: ClassVar[tuple[str, ...]] = ("classification", ".txt", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-words", "-sd")
    takes_encoders: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.model not in ("both", "cnn", "linear"):
            raise UsageError.unknown("model", self.model, ("both", "cnn", "linear"), where="classification")
        if self.seeds < 1:
            raise UsageError.expected("one seed or more", self.seeds, where="classification")

    def read(self, path: Path) -> LearntItems:
        pool, tested, divided = pool_parts(path, read_labelled, itemgetter(0), _QUICK if self.quick else None)
        names = sorted({label for label, _ in pool})
        if len(names) < 2:
            raise DatasetError.expected("two labels or more", len(names), path=path)
        texts = tuple((text,) for _, text in pool)
        labels = tuple(names.index(label) for label, _ in pool)
        gold = np.array(labels[:tested], np.float64)
        return LearntItems(texts[:tested], gold, (), texts[tested:], labels, divided)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        (answers,) = yield from self.answer_sets([lookup], items)
        return answers

    def answer_sets(self, lookups: Sequence[Representation], items: Items) -> Generator[float, None, list[Answers]]:
        """The answers of several sets of vectors, whose networks are trained together."""
        assert isinstance(items, LearntItems)
        texts = [text for (text,) in items.all_texts]
        labels = np.array(items.labels, np.int64)
        n = len(items)
        values: list[dict[str, Floats]] = [{"known-words": lookup.count_words(texts[:n])} for lookup in lookups]
        covered = [of_set["known-words"][:, 0] > 0 for of_set in values]
        for number, model in enumerate(models := self._models(lookups)):
            work = self._linear if model == "linear" else self._cnn
            predicted = yield from share(number, len(models), work(lookups, texts, labels, items))  # (S, n, seeds)
            for of_set, by_seed in zip(values, predicted, strict=True):
                of_set[f"accuracy-{model}"] = (by_seed == labels[:n, None]).mean(axis=1)
                of_set[f"macro-f1-{model}"] = by_seed.astype(np.float64)
        return [Answers(mask, of_set) for mask, of_set in zip(covered, values, strict=True)]

    def _models(self, lookups: Sequence[Representation]) -> list[str]:
        """The models to train; a network needs words, which encoders do not have."""
        models: list[str] = ["linear", "cnn"] if self.model == "both" else [self.model]
        if not all(lookup.has_words for lookup in lookups):
            models = [model for model in models if model == "linear"]
        if not models:
            reason = "The network of classification:model=cnn reads words, but an encoder has only whole texts"
            raise UsageError.conflict(reason, cure="use model=linear or model=both")
        return models

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        gold = items.gold[chosen]
        measures: dict[str, Callable[[Floats], Floats]] = {}
        for metric in answers.values:
            if metric.startswith("macro-f1-"):
                model = metric.removeprefix("macro-f1-")
                labels = answers.values[metric][chosen]  # (n, seeds)
                right, one = (labels == gold[:, None]).astype(np.float64), np.ones(len(gold))
                measures[f"accuracy-{model}"] = ratio(right, one)
                measures[metric] = partial(macro_f1, gold=gold, labels=labels)
                if labels.shape[1] > 1:
                    measures[f"accuracy-{model}-sd"] = spread(right, one)
        known = answers.values["known-words"][chosen]
        return estimates(measures | {"known-words": ratio(known[:, 0], known[:, 1])}, len(chosen), resampling)

    def _linear(
        self, lookups: Sequence[Representation], texts: Sequence[str], labels: Rows, items: LearntItems
    ) -> Generator[float, None, Rows]:
        predicted = np.zeros((len(lookups), len(items), 1), np.int64)
        for at, lookup in enumerate(lookups):
            rows = yield from lookup.encode_texts_steps(texts)
            for number, split in enumerate(items.rounds, 1):
                with single_thread():
                    scaling, weights = select_logistic(rows, labels, split.train, split.dev)
                    predicted[at, split.test, 0] = predict(scaling(rows[split.test]), weights)
                yield (at + number / len(items.rounds)) / len(lookups)
        return predicted

    def _cnn(
        self, lookups: Sequence[Representation], read: Sequence[str], labels: Rows, items: LearntItems
    ) -> Generator[float, None, Rows]:
        from stillvec.evaluation.network_training import QUICK, CnnSchedule, Convolution  # torch takes seconds
        from stillvec.evaluation.networks import PaddedTexts

        sets = []
        for lookup in lookups:
            sets.append((yield from lookup.read_texts_steps(read)))
        n_seeds, schedule = (1, QUICK) if self.quick else (self.seeds, CnnSchedule())
        texts = PaddedTexts(sets, resolve_network_device(self.device), border=1)
        convolution = Convolution(texts, labels, schedule, self.tuned)
        predicted = np.zeros((len(sets), len(items), n_seeds), np.int64)
        works = [convolution.run(split, n_seeds) for split in items.rounds]
        with single_thread():
            rounds = yield from beside(works, 1 if texts.device.type == "cuda" else None)
        for split, of_round in zip(items.rounds, rounds, strict=True):
            predicted[:, split.test] = of_round
        return predicted


def macro_f1(weights: Floats, gold: Floats, labels: Floats) -> Floats:
    """F1 in each resample (R,), the mean over labels and seeds, without labels that do not occur."""
    total = np.zeros(len(weights))
    for column in labels.T:
        f1 = []
        for label in np.union1d(gold, column):
            predicted, true = column == label, gold == label
            both = weights @ (predicted & true)
            total_named = weights @ predicted + weights @ true
            f1.append(np.divide(2 * both, total_named, out=np.full(len(weights), np.nan), where=total_named > 0))
        total += np.nanmean(f1, axis=0)
    return np.asarray(total / labels.shape[1])
