"""Pairs of texts: inference, paraphrase and answers, by a probe of frozen text vectors (Cengiz & Yuret 2020).

Files: `pairs/*.tsv` with a label, a text, a text and possibly its kinds, separated by commas, between tabs (SNLI, MNLI,
MRPC, MC-TACO, HANS, Comparisons); parts as in `splits.py`. The probe (`text_probe.py`) reads [u; v; |u - v|; u * v].

A challenge set has no training pairs, or the label `non-entailment`: it is only tested, with a probe that learnt from
`source`, by default mnli or snli. `source=own` learns from the set itself: its dev file, or by cross-validation. Where
the two sets have other labels, all labels but `entailment` are one: non-entailment.

    accuracy, macro-f1    over pairs; each kind is a section of the report
    exact-match           first texts all of whose pairs are right, where these have two or more on average (MC-TACO)
    reordered             pairs of the same words in another order that are not entailed (20 or more), each beside its
                          first text with itself: always 50% for a bag of words

`-second` is a probe that sees the second text alone, `-words` one of random word vectors, `-bigrams` one of random
vectors of each two words in a row, `-majority` the most frequent label, `-sd` the standard deviation over seeds.

A pair is covered if each of its texts has a known word. Interval: percentile bootstrap over pairs, of `exact-match`
over first texts.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.classification import macro_f1
from stillvec.evaluation.intervals import Estimate, Resampling, Rows
from stillvec.evaluation.supervised import LearntItems, Measure, estimates, ratio, share, spread
from stillvec.evaluation.tasks import Answers, Items
from stillvec.evaluation.text_probe import EncodedItems, ProbeTask, encode_items
from stillvec.heads.dataset_files import Pair as Pair
from stillvec.heads.dataset_files import read_pairs as read_pairs
from stillvec.heads.sequence_batches import Representation
from stillvec.heads.splits import find_parts, part_of, pool_parts, whole_datasets

_QUICK = 2000  # training pairs
_SOURCES = ("mnli", "snli")  # of a challenge set, the first that is there
_ENTAILED, _OTHER = "entailment", "non-entailment"
_SAME = (_ENTAILED, "1", "paraphrase", "duplicate")  # the label of a text with itself
_N_REORDERED = 20  # fewer pairs say nothing
_BUCKETS, _DIM = 1 << 14, 128  # of the random vectors
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class PairItems(LearntItems):
    kinds: tuple[tuple[str, ...], ...] = ()  # (n,)
    names: tuple[str, ...] = ()  # of the labels
    controls: dict[str, Rows] = field(default_factory=dict, compare=False)  # answers that no representation changes

    def members(self) -> dict[str, Rows]:
        members: dict[str, list[int]] = {}
        for number, kinds in enumerate(self.kinds):
            for kind in kinds:
                members.setdefault(kind, []).append(number)
        return {kind: np.array(numbers) for kind, numbers in members.items()}

    @property
    def same(self) -> int | None:
        """The label of a text with itself."""
        return next((self.names.index(name) for name in _SAME if name in self.names), None)

    @property
    def reordered(self) -> Rows:
        """The tested pairs of the same words in another order whose label is another one; none if they are few."""
        rows = [
            number
            for number, (first, second) in enumerate(self.texts)
            if self.gold[number] != self.same and first != second and _bag(first) == _bag(second)
        ]
        return np.array(rows if self.same is not None and len(rows) >= _N_REORDERED else [], np.int64)


@dataclass(frozen=True)
class Pairs(ProbeTask):
    source: str = "auto"  # the dataset whose training pairs the probe learns from; own: the tested one

    files: ClassVar[tuple[str, ...]] = ("pairs", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-second", "-words", "-bigrams", "-majority", "-sd")

    def find(self, folder: Path) -> list[Path]:
        paths = super().find(folder)
        return paths if self.source in ("auto", "own") else [path for path in paths if self._fits(path)]

    def other_data(self, path: Path) -> tuple[Path, ...]:
        return tuple(file for part, file in self.parts(path).items() if part != "test")

    def parts(self, path: Path) -> dict[str, Path]:
        """The files that the probe learns from and is tested on; none for the usual parts of the dataset."""
        own = find_parts(path)
        if self.source == "own" or (self.source == "auto" and not _is_challenge(path, own)):
            return {"test": own["test"], "train": own["dev"]} if {*own} == {"test", "dev"} else {}
        datasets = {
            _dataset(file): find_parts(file) or {"train": file} for file in whole_datasets(path.parent, (".tsv",))
        }
        if self.source == "auto" and not {*_SOURCES} & {*datasets}:
            return {}
        name = next(name for name in (self.source, *_SOURCES) if name in datasets or name == self.source != "auto")
        if name not in datasets:
            raise UsageError.unknown("dataset", name, datasets, where="setting 'source' of pairs")
        learnt = {part: file for part, file in datasets[name].items() if part != "test"}
        if "train" not in learnt:
            learnt = {"train": learnt["dev"]} if "dev" in learnt else {}
        return {"test": path, **learnt} if _dataset(path) != name else {}

    def _fits(self, path: Path) -> bool:
        """Whether a dataset is another one than its source, with labels that fit; true of a file with an error."""
        files = self.parts(path)
        try:
            return bool(files) and bool(_match_labels([*read_pairs(path)], [*read_pairs(files["train"])], files))
        except DatasetError as error:
            return error.code != "labels"

    def read(self, path: Path) -> PairItems:
        files = self.parts(path)
        pool, n_tested, rounds = pool_parts(
            path, read_pairs, attrgetter("label"), _QUICK if self.quick else None, files or None
        )
        learns_elsewhere = bool(files) and _dataset(files["train"]) != _dataset(path)
        pool = _match_labels(pool[:n_tested], pool[n_tested:], files) if learns_elsewhere else pool
        names = tuple(sorted({pair.label for pair in pool}))
        if len(names) < 2:
            raise DatasetError.expected("two labels or more", len(names), path=path)
        texts = tuple((pair.first, pair.second) for pair in pool)
        labels = tuple(names.index(pair.label) for pair in pool)
        gold = np.array(labels[:n_tested], np.float64)
        kinds = tuple(pair.kinds for pair in pool[:n_tested])
        return PairItems(texts[:n_tested], gold, (), texts[n_tested:], labels, rounds, kinds, names)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, PairItems)
        n, labels = len(items), np.array(items.labels, np.int64)
        table = yield from share(0, 2, encode_items(lookup, items.all_texts, slice(n, None)))
        if not items.controls:
            for number, (name, length) in enumerate((("words", 1), ("bigrams", 2))):
                hashed = _hash_texts(items.all_texts, length)
                linear = replace(self, probe="logistic")
                items.controls[name] = yield from share(2 + number, 6, linear._predict(hashed, labels, items))
        predicted = dict(items.controls)
        predicted[""] = yield from share(4, 6, self._predict(table, labels, items))
        second = replace(table, places=table.places[:, 1:])
        predicted["second"] = yield from share(5, 6, replace(self, seeds=1)._predict(second, labels, items))
        values: dict[str, NDArray[Any]] = {"known-words": table.known_of_all[:n]}
        for name, by_seed in predicted.items():
            ending = f"-{name}" if name else ""
            values[f"accuracy{ending}"] = (by_seed[:n] == labels[:n, None]).mean(axis=1)
            if name != "second" and len(items.reordered):
                values[f"reordered{ending}"] = np.full(n, np.nan)
                differs, stays = by_seed[items.reordered] != items.same, by_seed[n:] == items.same
                values[f"reordered{ending}"][items.reordered] = ((differs + stays * 1.0) / 2).mean(axis=1)
        values["macro-f1"] = predicted[""][:n].astype(np.float64)
        values["accuracy-majority"] = np.zeros(n)
        for split in items.rounds:
            most = np.bincount(labels[split.both]).argmax()
            values["accuracy-majority"][split.test] = labels[split.test] == most
        return Answers(table.is_covered(np.arange(n)), values)

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        gold, labels = items.gold[chosen], answers.values["macro-f1"][chosen]
        right, one = (labels == gold[:, None]).astype(np.float64), np.ones(len(gold))
        measures: dict[str, Measure] = {
            "accuracy": ratio(right, one),
            "macro-f1": partial(macro_f1, gold=gold, labels=labels),
        }
        if labels.shape[1] > 1:
            measures["accuracy-sd"] = spread(right, one)
        for metric, values in answers.values.items():
            if metric.startswith(("accuracy-", "reordered")):
                asked = np.isfinite(values[chosen])
                measures[metric] = ratio(np.where(asked, values[chosen], 0), asked * 1.0)
        known = answers.values["known-words"][chosen]
        scores = estimates(measures | {"known-words": ratio(known[:, 0], known[:, 1])}, len(chosen), resampling)
        return scores | self._exact_match(items, right, chosen, resampling)

    def _exact_match(
        self, items: Items, right: NDArray[np.float64], chosen: Rows, resampling: Resampling
    ) -> dict[str, Estimate]:
        if len({first for first, _ in items.texts}) > len(items) / 2:
            return {}
        groups: dict[str, int] = {}
        group = np.array([groups.setdefault(items.texts[row][0], len(groups)) for row in chosen], np.int64)
        all_right = np.ones((len(groups), right.shape[1]))
        np.minimum.at(all_right, group, right)
        return estimates({"exact-match": ratio(all_right, np.ones(len(groups)))}, len(groups), resampling)

    def _predict(self, table: EncodedItems, labels: Rows, items: PairItems) -> Generator[float, None, Rows]:
        """The labels of the tested pairs and of the first texts of reordered pairs with themselves (n + r, seeds)."""
        n, reordered = len(items), items.reordered
        whole = replace(
            table, places=np.concatenate([table.places, table.places[reordered][:, [0] * table.places.shape[1]]])
        )
        answers: list[Rows] = []
        for number, split in enumerate(items.rounds, 1):
            of_round = np.isin(reordered, split.test)
            asked = np.concatenate([split.test, len(labels) + np.flatnonzero(of_round)])
            predicted = self.predict_labels(whole, labels, split, asked)
            answers = answers or [np.zeros((n + len(reordered), predicted.shape[1]), np.int64)]
            answers[0][np.concatenate([split.test, n + np.flatnonzero(of_round)])] = predicted
            yield number / len(items.rounds)
        return answers[0]


def _match_labels(tested: list[Pair], training: list[Pair], files: Mapping[str, Path]) -> list[Pair]:
    """All pairs with their labels, or with entailment and non-entailment where those of the two sets differ."""
    asked, learnt = ({pair.label for pair in part} for part in (tested, training))
    if asked == learnt:
        return tested + training
    if _ENTAILED not in asked & learnt:
        what = f"the labels of {files['train'].name} ({', '.join(sorted(learnt))})"
        raise DatasetError.expected(what, ", ".join(sorted(asked)), path=files["test"], code="labels")
    return [pair._replace(label=_ENTAILED if pair.label == _ENTAILED else _OTHER) for pair in tested + training]


def _is_challenge(path: Path, parts: Mapping[str, Path]) -> bool:
    if parts and "train" not in parts:
        return True
    return not parts and any(pair.label == _OTHER for pair in read_pairs(path))


def _dataset(path: Path) -> str:
    return part_of(path)[0].strip(".")


def _bag(text: str) -> list[str]:
    return sorted(_TOKEN.findall(text))


def _hash_texts(texts: tuple[tuple[str, ...], ...], length: int) -> EncodedItems:
    """The mean of a random vector per `length` tokens in a row, one of 16,384."""
    vectors = np.random.default_rng(length).standard_normal((_BUCKETS, _DIM), np.float32)
    numbers: dict[str, int] = {}
    places = [[numbers.setdefault(text, len(numbers)) for text in item] for item in texts]
    rows = np.zeros((len(numbers), _DIM), np.float32)
    for text, number in numbers.items():
        tokens = ["", *_TOKEN.findall(text.lower()), ""] if length > 1 else _TOKEN.findall(text.lower())
        grams = [" ".join(tokens[at : at + length]) for at in range(len(tokens) - length + 1)]
        buckets = [zlib.crc32(gram.encode()) % _BUCKETS for gram in grams]
        rows[number] = vectors[buckets].mean(axis=0) if buckets else 0
    return EncodedItems(rows, np.array(places, np.int64), np.ones((len(rows), 2)))
