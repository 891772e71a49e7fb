"""Attributes: which attributes of a lexicon does a linear probe of a word's vector predict? (Zhang et al. 2020.)

The attributes are the sememes of HowNet (`lexicons/*.tsv`: a word, a tab and attributes separated by spaces) and, if
WordNet is installed, its hypernyms or its 45 categories (`kind`). The senses of a word are merged. Ridge regression of
the indicators on the vectors is fitted to the words of three fifths of the lexicon; a fifth selects the penalty, and a
fifth is tested. Attributes of fewer than `min_words` fitted words are left out, and words without any other.

    map           mean average precision: the attributes of a word ranked by the probe
    map-random    the same with a random vector per word
    map-prior     attributes ranked by their frequency, for all words alike

Words that share a synset may be on both sides of the split. An item is a tested word, covered if it has a vector.
Interval: percentile bootstrap over words; the fit is not repeated.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, LexiconError, UsageError
from stillvec.evaluation.intervals import Floats, Mask, Rows
from stillvec.evaluation.supervised import LearntItems
from stillvec.evaluation.tasks import Answers, CostlyTask, Items
from stillvec.files.path_names import files_in
from stillvec.heads.linear_probe import RidgePath
from stillvec.heads.lookup import Lookup
from stillvec.heads.splits import rounds, with_tested_first
from stillvec.lexicons import read_attributes
from stillvec.lexicons.word_attributes import WordNetKind
from stillvec.lexicons.wordnet import find_wordnet
from stillvec.registry import check_least

PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
_QUICK = 3000  # fitted words
_BLOCK = 4096  # words whose attributes are ranked at once


@dataclass(frozen=True)
class Attributes(CostlyTask):
    kind: WordNetKind = "hypernyms"  # of WordNet: hypernyms or lexnames
    min_words: int = 50
    max_words: int = 15_000  # fitted, drawn from those that have a vector

    item_unit: ClassVar[Literal["word", "text"]] = "word"
    files: ClassVar[tuple[str, ...]] = ("lexicons", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-random", "-prior")

    def __post_init__(self) -> None:
        check_least(self, min_words=1, max_words=10)
        if self.kind not in get_args(WordNetKind):
            raise UsageError.unknown("kind", self.kind, get_args(WordNetKind), where="attributes")

    def find(self, folder: Path) -> list[Path]:
        paths = files_in(folder / self.files[0], self.files[1:])
        with suppress(LexiconError):  # not installed
            wordnet = find_wordnet()
            paths.append(wordnet.parent if wordnet.name == "dict" else wordnet)
        return paths

    def read(self, path: Path) -> LearntItems:
        try:
            lexicon = read_attributes(path, self.kind)
        except LexiconError as error:
            raise DatasetError(str(error), code=error.code, path=error.path, line=error.line) from None
        words = [word for word in sorted(lexicon) if lexicon[word]]
        (split, *_) = rounds({"train": len(words)}, [""] * len(words), path)
        order, (split,) = with_tested_first([split])
        words = [words[at] for at in order]
        n_words = Counter(chain.from_iterable(lexicon[words[at]] for at in split.train))
        frequent = sorted(name for name, count in n_words.items() if count >= self.min_words)
        number = {name: at for at, name in enumerate(frequent)}
        labels = [tuple(number[name] for name in sorted(lexicon[word]) if name in number) for word in words]
        tested = [at for at in range(len(split.test)) if labels[at]]
        if not tested:
            raise DatasetError.expected(f"attributes of {self.min_words} words or more", "none", path=path)
        order, divided = with_tested_first([type(split)(split.train, split.dev, np.array(tested))])
        texts, sets = [(words[at],) for at in order], [labels[at] for at in order]
        n = len(tested)
        gold = np.array([len(attributes) for attributes in sets[:n]], np.float64)
        return LearntItems(tuple(texts[:n]), gold, (), tuple(texts[n:]), tuple(sets), divided)

    def answer_steps(self, lookup: Lookup, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, LearntItems)
        (split,) = items.rounds
        rows = lookup.rows([word for (word,) in items.all_texts])
        known = (rows != -1) | (lookup.oov in ("mean", "zero"))
        n_fitted = min(self.max_words, _QUICK) if self.quick else self.max_words
        train, dev = (_draw(part, known, n) for part, n in ((split.train, n_fitted), (split.dev, n_fitted // 4)))
        test = split.test[known[split.test]]
        labels = items.labels
        n_attributes = 1 + max(chain.from_iterable(labels))
        values = {name: np.zeros(len(items)) for name in ("map", "map-random", "map-prior")}
        if len(train) and len(dev):
            indicators = _mark(labels, train, n_attributes).astype(np.float64)
            tables = {"map": lookup.take(rows), "map-random": _draw_vectors(len(rows), lookup.vectors.dim)}
            for number, (name, table) in enumerate(tables.items()):
                values[name][test] = _probe(table, indicators, labels, train, dev, test)
                yield (number + 1) / len(tables)
            prior = np.broadcast_to(indicators.mean(axis=0), (len(test), n_attributes))
            values["map-prior"][test] = average_precision(prior, _mark(labels, test, n_attributes))
        return Answers(rows[: len(items)] != -1, values)


def average_precision(scores: Floats, gold: Mask) -> Floats:
    """The mean, over the gold columns of each row, of the precision at their rank (n,); 0 without any."""
    order = np.argsort(-scores, axis=1, kind="stable")
    hits = np.take_along_axis(gold, order, axis=1)
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return np.asarray((precision * hits).sum(axis=1) / np.maximum(hits.sum(axis=1), 1))


def _probe(
    table: NDArray[np.float32],
    indicators: Floats,
    labels: Sequence[tuple[int, ...]],
    train: Rows,
    dev: Rows,
    test: Rows,
) -> Floats:
    """The average precision of each tested word (n,); the penalty is the best on dev, the strongest of equals."""
    path = RidgePath(table[train], indicators)

    def rank(rows: Rows, penalty: float) -> Floats:
        blocks = np.split(rows, range(_BLOCK, len(rows), _BLOCK))
        marked = ((block, _mark(labels, block, indicators.shape[1])) for block in blocks)
        return np.concatenate([average_precision(path.predict(table[b], penalty), gold) for b, gold in marked])

    filled = dev[[bool(labels[at]) for at in dev]]
    best = max(sorted(PENALTIES, reverse=True), key=lambda penalty: float(rank(filled, penalty).sum()))
    return rank(test, best)


def _mark(labels: Sequence[tuple[int, ...]], rows: Rows, n_attributes: int) -> Mask:
    """Which attributes words have (n, attributes)."""
    marked = np.zeros((len(rows), n_attributes), bool)
    for place, at in enumerate(rows.tolist()):
        marked[place, [*labels[at]]] = True
    return marked


def _draw(rows: Rows, known: Mask, n: int) -> Rows:
    """At most `n` known words, at random but always the same."""
    return np.random.default_rng(0).permutation(rows[known[rows]])[:n]


def _draw_vectors(n: int, dim: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((n, dim), np.float32)
