"""Label probe: predict the part of speech and the relations of a word from its vector (Chang & Rafferty 2020).

Files: `tagging/*.conllu`. The labels are `upos`, the part of speech; `relation`, that of the word to its head; `parent`
and `grandparent`, those of its head and of the head of its head. `-probe` is the accuracy over words of a perceptron
with 500 hidden units, to be compared with

    -majority    the most frequent label of the word in training, or of all words for a word not seen there: the upper
                 bound for a model that sees only the word, except that vectors generalize to unseen words
    -random      the same probe with a random vector per word, of the same dimension

An item is a sentence, covered if one of its words is known. With the policy "skip" OOV words are not counted; else they
have the vector of the policy. Interval: percentile bootstrap over sentences.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.probing import randomize
from stillvec.evaluation.sequence_batches import UNKNOWN, Sequences
from stillvec.evaluation.splits import pool_parts
from stillvec.evaluation.supervised import LearntItems, estimates, ratio
from stillvec.evaluation.tasks import Answers, CostlyTask, Items
from stillvec.evaluation.treebank import Sentence, conllu
from stillvec.registry import check_least

_QUICK = 3000  # training sentences
KINDS = ("upos", "relation", "parent", "grandparent")


@dataclass(frozen=True)
class Labels(CostlyTask):
    hidden: int = 500  # units
    seeds: int = 1

    files: ClassVar[tuple[str, ...]] = ("tagging", ".conllu")
    controls: ClassVar[tuple[str, ...]] = ("-majority", "-random")

    def __post_init__(self) -> None:
        check_least(self, hidden=1, seeds=1)

    def read(self, path: Path) -> LearntItems:
        return read_labels(path, _QUICK if self.quick else None)

    def answer_steps(self, lookup: Lookup, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, LearntItems)
        sequences = lookup.read_tokens(items.all_texts)
        counted = (sequences.ids != UNKNOWN) | (lookup.oov != "skip")
        tables = {"probe": sequences.scale_table(), "random": randomize(sequences).table}
        n = len(items)
        n_words = np.bincount(sequences.text[counted], minlength=len(sequences))
        values: dict[str, Floats] = {"words": n_words[:n].astype(np.float64)}
        for at, kind in enumerate(KINDS):
            labels = kind_labels(items, at)
            right = {name: np.zeros(n) for name in (*tables, "majority")}
            for split in items.rounds:
                train, dev, both = (_counts(sequences, labels, rows) for rows in (split.train, split.dev, split.both))
                majority = np.where(both.any(axis=1), both.argmax(axis=1), both.sum(axis=0).argmax())
                predicted = {"majority": majority[:, None]}
                for number, (name, table) in enumerate(tables.items()):
                    predicted[name] = self._probe(table, train, dev)
                    yield (at + (number + 1) / len(tables)) / len(KINDS)
                for name, of_words in predicted.items():
                    hits = (of_words[sequences.ids] == labels[:, None]).mean(axis=1)  # over seeds
                    hits *= counted & np.isin(sequences.text, split.test)
                    right[name] += np.bincount(sequences.text, hits, minlength=len(sequences))[:n]
            values |= {f"{kind}-{name}": n_right for name, n_right in right.items()}
        return Answers(sequences.known[:n] > 0, values)

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        words = answers.values["words"][chosen]
        measures = {name: ratio(right[chosen], words) for name, right in answers.values.items() if name != "words"}
        return estimates(measures, len(chosen), resampling)

    def _probe(self, table: NDArray[np.float32], train: Floats, dev: Floats) -> Rows:
        """The label of each row of the table (w, seeds)."""
        from stillvec.evaluation.networks import perceptron  # torch takes seconds

        n_seeds, n_hidden = (1, -(-self.hidden // 10)) if self.quick else (self.seeds, self.hidden)
        return np.stack([perceptron(table, train, dev, n_hidden, seed) for seed in range(n_seeds)], axis=1)


def read_labels(path: Path, n_max: int | None) -> LearntItems:
    """Sentences with the labels of their words, a tuple per word."""
    pool, tested, divided = pool_parts(path, conllu, lambda _: "", n_max)
    words = tuple(tuple(token.form for token in sentence) for sentence in pool)
    labels = tuple(tuple(_labels(sentence)) for sentence in pool)
    return LearntItems.from_sentences(words, tested, labels, divided)


def kind_labels(items: LearntItems, kind: int) -> Rows:
    """The number of the label of each word (N,)."""
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
    """How often each row of the table has each label in the chosen sentences (w, k)."""
    inside = np.isin(sequences.text, chosen)
    counts = np.zeros((len(sequences.table), int(labels.max()) + 1))
    np.add.at(counts, (sequences.ids[inside], labels[inside]), 1)
    return counts
