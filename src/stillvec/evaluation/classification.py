"""Sentence classification by a convolutional network, by a linear probe and by nearest neighbours.

Files: `classification/*.txt` or `*.tsv` with a label, a space and a text per line (MR, CR, SUBJ, MPQA, TREC, SST-5);
lines that are not UTF-8 are read as Latin-1. `name.test.txt` needs `name.train.txt` and may have `name.dev.txt`; a
single file is cross-validated. With `source=NAME` all models are trained on that dataset and tested on the others with
its labels (`transfer.py`).

`model` is any of these, joined by +; `both` is linear+cnn:

    cnn       the protocol of Gupta & Jaggi (2021), see `networks.py` and `network_training.py`, on the rows of words
    linear    logistic regression on the vector of the text, its penalty selected on development items
    knn       the labels of the `k` texts of highest cosine in training, and `-knn-balanced` with votes divided by the
              number of training texts of a label (`neighbour_votes.py`); `-majority`, the control, is the most frequent
              label in training

The vector of a text is the mean of its known words, or the sentence vector of a teacher or encoder; encoders have no
`cnn`. Vectors are not trained unless `tuned` (only `cnn`); the network reads all of them times one factor, so that one
learning rate suits all sets.

An item is covered if one of its words is known; `known-words` is the share of known words. OOV words in a text have the
vector of the policy in the network and are left out of the mean. Values are means over seeds; `-sd` is the standard
deviation over seeds. Interval: percentile bootstrap over items.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows
from stillvec.evaluation.layer_mix import learn_mix, mix_rows, mix_texts
from stillvec.evaluation.supervised import (
    LearntItems,
    beside,
    estimates,
    ratio,
    read_sets,
    resolve_network_device,
    share,
    single_thread,
    spread,
)
from stillvec.evaluation.tasks import Answers, Items
from stillvec.evaluation.transfer import TransferTask
from stillvec.heads.dataset_files import read_labelled
from stillvec.heads.linear_probe import predict, select_logistic
from stillvec.heads.neighbour_votes import balance_votes, count_votes
from stillvec.heads.sequence_batches import Representation, Sequences
from stillvec.heads.splits import Round, pool_parts
from stillvec.registry import check_least

_QUICK = 2000  # training texts
_QUICK_WORDS = 200  # of a text that the network reads: the longest one makes all of its batch as long


class _TextRows(NamedTuple):
    """What a set gives for the texts of a dataset."""

    layers: list[NDArray[np.float32]]  # the vectors of texts (n, dim), of each layer of a mix; one if there is no mix
    known: Floats  # (n, 2) known words and all words
    sequences: Sequences | None  # the rows of words, where a model reads them

    def vectors(self, labels: Rows, split: Round) -> NDArray[np.float32]:
        """The vectors of texts (n, dim); a mix is learned from the training texts."""
        if len(self.layers) == 1:
            return self.layers[0]
        return mix_rows(self.layers, learn_mix([layer[split.train] for layer in self.layers], labels[split.train]))


Predicted = dict[str, list[Rows]]  # model → of each set (n, seeds)


@dataclass(frozen=True)
class Classification(TransferTask):
    model: str = "both"  # any of cnn, linear, knn, joined by +; both: linear+cnn
    seeds: int = 3
    tuned: bool = False
    device: Literal["auto", "cpu", "cuda"] = "auto"
    k: int = 10  # neighbours of knn
    center: bool = False  # subtract the mean of the training texts before knn

    files: ClassVar[tuple[str, ...]] = ("classification", ".txt", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-words", "-sd", "-majority")
    learns_mix: ClassVar[bool] = True
    takes_encoders: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in self._models():
            if name not in ("linear", "cnn", "knn"):
                raise UsageError.unknown("model", name, ("both", "linear", "cnn", "knn"), where="classification")
        check_least(self, seeds=1, k=1)

    def _models(self, lookups: Sequence[Representation] = ()) -> list[str]:
        """The models to train; a network needs words, which encoders do not have."""
        models = ["linear", "cnn"] if self.model == "both" else self.model.split("+")
        if not all(lookup.has_words for lookup in lookups):
            models = [model for model in models if model != "cnn"]
        if not models:
            reason = "The network of classification:model=cnn reads words, but an encoder has only whole texts"
            raise UsageError.conflict(reason, cure="use model=linear, model=knn or model=both")
        return models

    def read(self, path: Path) -> LearntItems:
        most, files = _QUICK if self.quick else None, self.choose_files(path)
        pool, tested, divided = pool_parts(path, read_labelled, itemgetter(0), most, files)
        names = sorted({label for label, _ in pool})
        if len(names) < 2:
            raise DatasetError.expected("two labels or more", len(names), path=path)
        texts = tuple((text,) for _, text in pool)
        labels = tuple(names.index(label) for label, _ in pool)
        gold = np.array(labels[:tested], np.float64)
        return LearntItems(texts[:tested], gold, (), texts[tested:], labels, divided)

    def list_labels(self, path: Path) -> set[str]:
        return {label for label, _ in read_labelled(path)}

    def answer_sets(self, lookups: Sequence[Representation], items: Items) -> Generator[float, None, list[Answers]]:
        assert isinstance(items, LearntItems)
        texts = [text for (text,) in items.all_texts]
        models = self._models(lookups)
        sets = yield from read_sets([self._read_texts(lookup, texts, models) for lookup in lookups])
        labels = np.array(items.labels, np.int64)
        n, works = len(items), {"linear": self._linear, "cnn": self._cnn, "knn": self._knn}
        values: list[dict[str, Floats]] = [{"known-words": part.known[:n]} for part in sets]
        for number, name in enumerate(models):
            with single_thread():
                work = works[name](sets, labels, items)
                predicted = yield from share(1, 2, share(number, len(models), work))
            for model, by_set in predicted.items():
                for of_set, by_seed in zip(values, by_set, strict=True):
                    of_set[f"accuracy-{model}"] = (by_seed == labels[:n, None]).mean(axis=1)
                    of_set[f"macro-f1-{model}"] = by_seed.astype(np.float64)
        covered = (part.known[:n, 0] > 0 for part in sets)
        return [Answers(mask, of_set) for mask, of_set in zip(covered, values, strict=True)]

    def _read_texts(
        self, lookup: Representation, texts: Sequence[str], models: Sequence[str]
    ) -> Generator[float, None, _TextRows]:
        reads_words, reads_texts = "cnn" in models, {*models} != {"cnn"}
        n_parts = reads_words + reads_texts
        layers: list[NDArray[np.float32]] = []
        if reads_texts:
            layers = yield from share(0, n_parts, lookup.encode_layers_steps(texts))
        if not reads_words:
            return _TextRows(layers, lookup.count_words(texts), None)
        sequences = yield from share(n_parts - 1, n_parts, lookup.read_texts_steps(texts))
        return _TextRows(layers, sequences.known_of_all, sequences)

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

    def _linear(self, sets: list[_TextRows], labels: Rows, items: LearntItems) -> Generator[float, None, Predicted]:
        predicted = [np.zeros((len(items), 1), np.int64) for _ in sets]
        for at, part in enumerate(sets):
            for number, split in enumerate(items.rounds, 1):
                x = part.vectors(labels, split)
                scaling, weights = select_logistic(x, labels, split.train, split.dev)
                predicted[at][split.test, 0] = predict(scaling(x[split.test]), weights)
                yield (at + number / len(items.rounds)) / len(sets)
        return {"linear": predicted}

    def _knn(self, sets: list[_TextRows], labels: Rows, items: LearntItems) -> Generator[float, None, Predicted]:
        names = ("knn", "knn-balanced", "majority")
        predicted = {name: [np.zeros((len(items), 1), np.int64) for _ in sets] for name in names}
        for at, part in enumerate(sets):
            for number, split in enumerate(items.rounds, 1):
                x, known = part.vectors(labels, split), labels[split.both]
                if self.center:
                    x = np.where(x.any(axis=1, keepdims=True), x - x[split.both].mean(axis=0), x)
                votes = count_votes(x[split.both], known, x[split.test], self.k, int(labels.max()) + 1)
                said = votes.argmax(axis=1), balance_votes(votes, known).argmax(axis=1), np.bincount(known).argmax()
                for name, of_texts in zip(names, said, strict=True):
                    predicted[name][at][split.test, 0] = of_texts
                yield (at + number / len(items.rounds)) / len(sets)
        return predicted

    def _cnn(self, sets: list[_TextRows], labels: Rows, items: LearntItems) -> Generator[float, None, Predicted]:
        from stillvec.evaluation.network_training import QUICK, CnnSchedule, Convolution  # torch takes seconds
        from stillvec.heads.networks import PaddedTexts

        n_seeds, schedule = (1, QUICK) if self.quick else (self.seeds, CnnSchedule())
        sequences = [part.sequences for part in sets if part.sequences is not None]
        device = resolve_network_device(self.device)
        texts: PaddedTexts | None = None
        works: list[Generator[float, None, Rows]] = []
        for split in items.rounds:
            if texts is None or any(part.layers for part in sequences):
                read = [mix_texts(part, labels, split.train) for part in sequences]
                read = [part.truncate(_QUICK_WORDS) for part in read] if self.quick else read
                texts = PaddedTexts(read, device, border=1)
            works.append(Convolution(texts, labels, schedule, self.tuned).run(split, n_seeds))
        predicted = [np.zeros((len(items), n_seeds), np.int64) for _ in sets]
        rounds = yield from beside(works, 1 if device.type == "cuda" else None)
        for split, of_round in zip(items.rounds, rounds, strict=True):
            for of_set, by_seed in zip(predicted, of_round, strict=True):
                of_set[split.test] = by_seed
        return {"cnn": predicted}


def macro_f1(weights: Floats, gold: Floats, labels: Floats) -> Floats:
    """F1 in each resample (R,), the mean over labels and seeds, without labels that do not occur."""
    from scipy.sparse import csr_array

    classes, codes = np.unique(np.column_stack([gold, labels]), return_inverse=True)
    codes = codes.reshape(len(gold), -1)
    items, shape = np.arange(len(gold)), (len(classes), len(gold))

    def count(codes: Rows, mask: NDArray[np.bool_] | None = None) -> Floats:
        """How often each class is drawn in each resample (k, R)."""
        chosen = items if mask is None else items[mask]
        return np.asarray(csr_array((np.ones(len(chosen)), (codes[chosen], chosen)), shape) @ weights.T)

    true = count(codes[:, 0])
    total = np.zeros(len(weights))
    for column in codes[:, 1:].T:
        both, named = count(column, column == codes[:, 0]), true + count(column)
        f1 = np.divide(2 * both, named, out=np.full(named.shape, np.nan), where=named > 0)
        total += np.nanmean(f1, axis=0)
    return np.asarray(total / labels.shape[1])
