"""The label probe: what a word's vector alone tells of part of speech and place in the tree (Chang & Rafferty 2020).

Every `tagging/*.conllu`: `upos`, the word's part of speech; `relation`, what binds it to its head; `parent` and
`grandparent`, what binds its head and the head of that. A perceptron of 500 hidden units learns each from the vector of
the word; `-probe` is its accuracy over words. Beside it stand

    -majority    the label that the word had most often in training, the global one for a word not met there: the
                 ceiling of whatever sees nothing but the word, but for words that only vectors relate to others
    -random      the same probe over a random vector a word of the same dimension

An item is a sentence, covered if one of its words is known. With "skip" unknown words are not counted, in any of the
figures; else they have the policy's vector. Interval: percentile bootstrap over sentences.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.evaluation.intervals import Estimate, Resampling
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.probing import randomized
from stillvec.evaluation.sequence_batches import UNKNOWN, Sequences, tokens_as_sequences
from stillvec.evaluation.splits import Round, Rows, pooled, whole_datasets
from stillvec.evaluation.supervised import LearntItems, estimates, ratio
from stillvec.evaluation.tasks import Answers, CostlyTask, Items
from stillvec.evaluation.treebank import Sentence, conllu

_QUICK = 3000  # training sentences
KINDS = ("upos", "relation", "parent", "grandparent")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Labels(CostlyTask):
    hidden: int = 500  # units
    seeds: int = 1

    controls: ClassVar[tuple[str, ...]] = ("-majority", "-random")

    def __post_init__(self) -> None:
        if min(self.hidden, self.seeds) < 1:
            raise UsageError(f"At least one unit and one seed are wanted, and {self.hidden} and {self.seeds} came.")

    def find(self, folder: Path) -> list[Path]:
        return whole_datasets(folder / "tagging", (".conllu",))

    def read(self, path: Path) -> LearntItems:
        return labelled_words(path, _QUICK if self.quick else None)

    def answer_steps(self, lookup: Lookup, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, LearntItems)
        sequences = tokens_as_sequences(lookup, items.all_texts)
        counted = (sequences.ids != UNKNOWN) | (lookup.oov != "skip")
        tables = {"probe": sequences.scaled(), "random": randomized(sequences).table}
        n = len(items)
        values: dict[str, NDArray[np.float64]] = {
            "words": np.bincount(sequences.text[counted], minlength=len(sequences))[:n].astype(np.float64)
        }
        for at, kind in enumerate(KINDS):
            labels = kind_labels(items, at)
            right = {name: np.zeros(n) for name in (*tables, "majority")}
            for split in items.rounds:
                seen, judged, both = (_counts(sequences, labels, rows) for rows in (split.train, split.dev, split.both))
                said = {"majority": np.where(both.any(axis=1), both.argmax(axis=1), both.sum(axis=0).argmax())[:, None]}
                for number, (name, table) in enumerate(tables.items()):
                    said[name] = self._probe(table, seen, judged)
                    yield (at + (number + 1) / len(tables)) / len(KINDS)
                for name, each in said.items():
                    right[name] += _right(sequences, labels, counted, split, each)[:n]
            values |= {f"{kind}-{name}": each for name, each in right.items()}
        return Answers(sequences.known[:n] > 0, values)

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        words = answers.values["words"][chosen]
        right = {name: values[chosen] for name, values in answers.values.items() if name != "words"}
        return estimates({name: ratio(each, words) for name, each in right.items()}, len(chosen), resampling)

    def _probe(self, table: NDArray[np.float32], seen: Floats, judged: Floats) -> Rows:
        """The label of each row of the table (w, seeds)."""
        from stillvec.evaluation.perceptron import perceptron  # torch takes seconds

        seeds, hidden = (1, -(-self.hidden // 10)) if self.quick else (self.seeds, self.hidden)
        return np.stack([perceptron(table, seen, judged, hidden, seed) for seed in range(seeds)], axis=1)


def labelled_words(path: Path, most: int | None) -> LearntItems:
    """Sentences whose `labels` are those of their words, one tuple a kind."""
    pool, tested, divided = pooled(path, conllu, lambda _: "", most)
    words = tuple(tuple(token.form for token in sentence) for sentence in pool)
    labels = tuple(tuple(_labels(sentence)) for sentence in pool)
    lengths = np.array([*map(len, words[:tested])], np.float64)
    return LearntItems(words[:tested], lengths, (), words[tested:], labels, divided)


def kind_labels(items: LearntItems, kind: int) -> Rows:
    """Numbers of the labels of all words (N,)."""
    names = [labels[kind] for labels in chain.from_iterable(items.labels)]
    place = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.array([place[name] for name in names], np.int64)


def _labels(sentence: Sentence) -> Iterator[tuple[str, ...]]:
    """The labels of each word, in the order of KINDS."""
    for token in sentence:
        parent = sentence[token.head - 1] if token.head else None
        above = sentence[parent.head - 1] if parent and parent.head else None
        yield token.upos, token.relation, parent.relation if parent else "none", above.relation if above else "none"


def _counts(sequences: Sequences, labels: Rows, chosen: Rows) -> Floats:
    """How often each row of the table had each label in the chosen sentences (w, k)."""
    inside = np.isin(sequences.text, chosen)
    counts = np.zeros((len(sequences.table), int(labels.max()) + 1))
    np.add.at(counts, (sequences.ids[inside], labels[inside]), 1)
    return counts


def _right(sequences: Sequences, labels: Rows, counted: NDArray[np.bool_], split: Round, said: Rows) -> Floats:
    """How many words of each sentence get their label, the mean over seeds (n,); 0 outside the test."""
    right = (said[sequences.ids] == labels[:, None]).mean(axis=1)
    right *= counted & np.isin(sequences.text, split.test)
    return np.asarray(np.bincount(sequences.text, right, minlength=len(sequences)))
