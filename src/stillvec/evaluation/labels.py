"""Label probe: predict the part of speech and the relations of a word from its vector (Chang & Rafferty 2020).

Files: `tagging/*.conllu`. The labels are `upos`, the part of speech; `relation`, that of the word to its head; `parent`
and `grandparent`, those of its head and of the head of its head. With `of=constituents` they are those of the paper,
from `trees/*.txt`: `tag`, the part of speech, and `parent`, `grandparent` and `great-grandparent`, the constituents
above the word. `-probe` is the accuracy over words of a perceptron with 500 hidden units, to be compared with

    -majority    the most frequent label of the word in training, or of all words for a word not seen there: the upper
                 bound for a model that sees only the word, except that vectors generalize to unseen words
    -random      the same probe with a random vector per word, of the same dimension, without restarts
    -sd          the standard deviation of the accuracy over restarts (`seeds`, 20 in the paper)

An item is a sentence, covered if one of its words is known. With the policy "skip" OOV words are not counted; else they
have the vector of the policy. Interval: percentile bootstrap over sentences. `Report.label_probes` has the F1 of each
label, the agreement of the sets, and tests over restarts (`label_probes.py`).
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows
from stillvec.evaluation.label_probes import MAJORITY, RANDOM, LabelProbe, Predictions, study_probes
from stillvec.evaluation.layer_mix import mix_words
from stillvec.evaluation.probing import randomize
from stillvec.evaluation.supervised import LearntItems, Measure, estimates, ratio, resolve_network_device, share, spread
from stillvec.evaluation.tasks import Answers, Items, TokenTask
from stillvec.heads.sequence_batches import UNKNOWN, Representation, Sequences
from stillvec.heads.splits import pool_parts, whole_datasets
from stillvec.heads.treebank import Sentence, conllu
from stillvec.heads.trees import ROOTS, Tree, read_trees
from stillvec.registry import check_least

_QUICK = 3000  # training sentences
_BATCH = 1024  # occurrences of words
_NONE = "none"  # the label above the highest one
_TREES = ("trees", ".txt")
RELATIONS: Final = "relations"
CONSTITUENTS: Final = "constituents"
KINDS = {
    RELATIONS: ("upos", "relation", "parent", "grandparent"),
    CONSTITUENTS: ("tag", "parent", "grandparent", "great-grandparent"),
}


@dataclass(frozen=True)
class Labels(TokenTask):
    hidden: int = 500  # units
    seeds: int = 3  # restarts
    of: Literal["relations", "constituents"] = RELATIONS  # labels of dependencies, or of the constituents above a word

    files: ClassVar[tuple[str, ...]] = ("tagging", ".conllu")
    controls: ClassVar[tuple[str, ...]] = ("-majority", "-random", "-sd")
    learns_mix: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_least(self, hidden=1, seeds=1)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of the labels that each word has."""
        return KINDS[self.of]

    def find(self, folder: Path) -> list[Path]:
        name, suffix = self.files if self.of == RELATIONS else _TREES
        return whole_datasets(folder / name, (suffix,))

    def read(self, path: Path) -> LearntItems:
        n_max = _QUICK if self.quick else None
        return read_labels(path, n_max) if self.of == RELATIONS else _read_tree_labels(path, n_max)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, LearntItems)
        sequences = yield from share(0, 2, lookup.read_tokens_steps(items.all_texts))
        return (yield from share(1, 2, self._answer(sequences, items, lookup.oov != "skip")))

    def _answer(self, sequences: Sequences, items: LearntItems, counts_oov: bool) -> Generator[float, None, Answers]:
        counted = (sequences.ids != UNKNOWN) | counts_oov
        by_type = replace(sequences, ids=sequences.types)  # the controls have one answer per type
        inputs = {"probe": _scale(sequences), "random": randomize(sequences)}
        n = len(items)
        n_words = np.bincount(sequences.text[counted], minlength=len(sequences))
        values: dict[str, NDArray[Any]] = {"words": n_words[:n].astype(np.float64)}
        for at, kind in enumerate(self.kinds):
            labels = kind_labels(items, at)
            said: dict[str, Rows] = {}  # the label of each word (N, restarts), -1 for a word that is not counted
            for split in items.rounds:
                if sequences.layers:
                    inputs["probe"] = _scale(mix_words(sequences, labels, split.train))
                both = _counts(by_type, labels, split.both)
                majority = np.where(both.any(axis=1), both.argmax(axis=1), both.sum(axis=0).argmax())
                predicted = {"majority": majority[:, None][by_type.ids]}  # of each word (N, restarts)
                for number, (name, given) in enumerate(inputs.items()):
                    task = self if name == "probe" else replace(self, seeds=1)  # one restart of the control is enough
                    train, dev = (_counts(given, labels, rows) for rows in (split.train, split.dev))
                    predicted[name] = task._probe(given, train, dev)[given.ids]
                    yield (at + (number + 1) / len(inputs)) / len(self.kinds)
                tested = counted & np.isin(sequences.text, split.test)
                for name, of_words in predicted.items():
                    rows = said.setdefault(name, np.full((len(sequences.ids), of_words.shape[1]), -1, np.int64))
                    rows[tested] = of_words[tested]
            of_items = sequences.text < n
            for name, rows in said.items():
                hits = [np.bincount(sequences.text, column == labels, minlength=len(sequences)) for column in rows.T]
                values[f"{kind}-{name}"] = np.stack(hits, axis=1)[:n].astype(np.float64)
                values[f"said:{kind}-{name}"] = rows[of_items].astype(np.int16)
        return Answers(sequences.known[:n] > 0, values)

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        words = answers.values["words"][chosen]
        measures: dict[str, Measure] = {}
        for metric in (f"{kind}-{name}" for kind in self.kinds for name in ("probe", "random", "majority")):
            right = answers.values[metric][chosen]  # (n, restarts)
            measures[metric] = ratio(right, words)
            if right.shape[1] > 1:
                measures[f"{metric}-sd"] = spread(right, words)
        return estimates(measures, len(chosen), resampling)

    def _probe(self, sequences: Sequences, train: Floats, dev: Floats) -> Rows:
        """The label of each row of the table (w, seeds)."""
        from stillvec.heads.networks import perceptron  # torch takes seconds

        n_seeds, n_hidden = (1, -(-self.hidden // 10)) if self.quick else (self.seeds, self.hidden)
        occurs = sequences.occurrence_types is not None
        batches: dict[str, Any] = {"batches": (_BATCH, resolve_network_device("auto"))} if occurs else {}
        arguments = sequences.table, train, dev, n_hidden
        return np.stack([perceptron(*arguments, seed, **batches) for seed in range(n_seeds)], axis=1)


def read_labels(path: Path, n_max: int | None) -> LearntItems:
    """Sentences with the labels of their words, a tuple per word."""
    pool, tested, divided = pool_parts(path, conllu, lambda _: "", n_max)
    words = tuple(tuple(token.form for token in sentence) for sentence in pool)
    labels = tuple(tuple(_labels(sentence)) for sentence in pool)
    return LearntItems.from_sentences(words, tested, labels, divided)


def _read_tree_labels(path: Path, n_max: int | None) -> LearntItems:
    pool, tested, divided = pool_parts(path, read_trees, lambda _: "", n_max)
    words, labels = tuple(tree.words for tree in pool), tuple(tuple(_labels_above(tree)) for tree in pool)
    return LearntItems.from_sentences(words, tested, labels, divided)


def compare_probes(
    dataset: str, kinds: Sequence[str], items: LearntItems, answers: Mapping[str, Answers]
) -> Iterator[LabelProbe]:
    """The probes of all sets on the words that each of them counts, per kind of label."""
    texts = np.repeat(np.arange(len(items)), [*map(len, items.texts)])
    first = next(iter(answers.values())).values
    for at, kind in enumerate(kinds):
        names = sorted({labels[at] for labels in chain.from_iterable(items.labels)})
        said = {name: answer.values[f"said:{kind}-probe"].astype(np.int64) for name, answer in answers.items()}
        common = np.logical_and.reduce([rows[:, 0] != -1 for rows in said.values()])
        said[RANDOM] = first[f"said:{kind}-random"].astype(np.int64)
        said[MAJORITY] = first[f"said:{kind}-majority"].astype(np.int64)
        chosen = {name: rows[common] for name, rows in said.items()}
        gold = kind_labels(items, at)[: len(texts)][common]
        yield study_probes(dataset, kind, Predictions(tuple(names), gold, texts[common], chosen))


def kind_labels(items: LearntItems, kind: int) -> Rows:
    """The number of the label of each word (N,)."""
    names = [labels[kind] for labels in chain.from_iterable(items.labels)]
    place = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.array([place[name] for name in names], np.int64)


def _labels(sentence: Sentence) -> Iterator[tuple[str, ...]]:
    """The labels of each word, in the order of its kinds."""
    for token in sentence:
        parent = sentence[token.head - 1] if token.head else None
        above = sentence[parent.head - 1] if parent and parent.head else None
        yield token.upos, token.relation, parent.relation if parent else _NONE, above.relation if above else _NONE


def _labels_above(tree: Tree) -> Iterator[tuple[str, ...]]:
    """The tag of each word and the labels of the three constituents above it."""
    for node in tree.nodes:
        if node.is_tag:
            labels, above = [node.label], node
            while len(labels) < len(KINDS[CONSTITUENTS]) and above.parent >= 0:
                above = tree.nodes[above.parent]
                if above.label not in ROOTS:
                    labels.append(above.label)
            labels += [_NONE] * (len(KINDS[CONSTITUENTS]) - len(labels))
            for _ in range(node.first, node.last + 1):
                yield tuple(labels)


def _scale(sequences: Sequences) -> Sequences:
    return sequences if sequences.layers else replace(sequences, table=sequences.scale_table())


def _counts(sequences: Sequences, labels: Rows, chosen: Rows) -> Floats:
    """How often each row of the table has each label in the chosen sentences (w, k)."""
    inside = np.isin(sequences.text, chosen)
    n_rows = max(len(sequences.table), int(sequences.ids.max(initial=UNKNOWN)) + 1)
    counts = np.zeros((n_rows, int(labels.max()) + 1))
    np.add.at(counts, (sequences.ids[inside], labels[inside]), 1)
    return counts
