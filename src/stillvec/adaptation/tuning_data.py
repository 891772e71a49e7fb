"""Datasets that a teacher is tuned on, in the forms of `evaluate`, and their texts as batches of tokens.

    classification/*.txt|.tsv      a label and a text
    multilabel/*.txt               labels joined by commas, and a text
    pairs/*.tsv                    a label and two texts
    tagging/*.conllu|.tsv|...      words and their tags
    roles/*.jsonl                  words, predicates and their roles; one item per predicate, tags in IOB

A dataset is a file, or `NAME` of `NAME.train.ext`, `NAME.dev.ext` and `NAME.test.ext`. Without a development file, a
fifth of the training items is for development.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.errors import DatasetError, UsageError
from stillvec.heads.dataset_files import read_labelled, read_pairs
from stillvec.heads.labelled_data import Unit, locate_parts, read_data
from stillvec.heads.span_questions import read_marked
from stillvec.heads.splits import fifths
from stillvec.heads.treebank import are_spans, count_spans, read_tagged

Kind = Literal["classification", "multilabel", "pairs", "tagging", "roles"]
KINDS: tuple[Kind, ...] = ("classification", "multilabel", "pairs", "tagging", "roles")
_WORDS = ("tagging", "roles")  # kinds that label words
UNITS: dict[Kind, Unit] = {"classification": "text", "multilabel": "text", "pairs": "pair", "tagging": "tokens"}
IGNORED = -100


class Item(NamedTuple):
    """A text, two texts or words, and its label or labels, or the tag of each word."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    marked: int = -1  # the word that the tags are about
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class TuningData:
    kind: Kind
    train: Sequence[Item]
    dev: Sequence[Item]
    test: Sequence[Item]

    @cached_property
    def names(self) -> list[str]:
        """The labels in training and development, sorted."""
        return sorted({label for item in chain(self.train, self.dev) for label in item.labels})

    @property
    def labels_words(self) -> bool:
        return self.kind in _WORDS

    def targets(self, items: Sequence[Item], words: Sequence[NDArray[np.int64]], width: int) -> Tensor:
        """What a model should say: (n,) a label, (n, k) labels, or (n, T) tags at the first tokens of words."""
        number = {name: place for place, name in enumerate(self.names)}
        if self.kind == "multilabel":
            several = torch.zeros(len(items), len(self.names))
            for row, item in enumerate(items):
                several[row, [number[label] for label in item.labels if label in number]] = 1
            return several
        if not self.labels_words:
            return torch.tensor([number.get(item.labels[0], IGNORED) for item in items])
        tags = torch.full((len(items), width), IGNORED)
        for row, (item, places) in enumerate(zip(items, words, strict=True)):
            known = places >= 0
            values = np.array([number.get(tag, IGNORED) for tag in item.labels])
            tags[row, torch.from_numpy(places[known])] = torch.from_numpy(values[known])
        return tags

    def score(self, items: Sequence[Item], said: Sequence[NDArray[Any]], threshold: float = 0.5) -> float:
        """Accuracy, micro-F1 of labels that are more likely than a threshold, or span F1 of tags that mark spans."""
        number = {name: place for place, name in enumerate(self.names)}
        if self.kind == "multilabel":
            gold = np.array([[name in item.labels for name in self.names] for item in items])
            found = np.stack([*said]) > threshold
            return 2 * float((gold & found).sum()) / max(1, int(gold.sum() + found.sum()))
        if not self.labels_words:
            right = [number.get(item.labels[0], -1) == int(label) for item, label in zip(items, said, strict=True)]
            return float(np.mean(right))
        gold_tags = np.array([number.get(tag, -1) for item in items for tag in item.labels], np.int64)
        tags = np.concatenate([*said])
        if not are_spans(self.names):
            return float((gold_tags == tags).mean())
        text = np.repeat(np.arange(len(items)), [len(item.labels) for item in items])
        known = gold_tags >= 0
        outside = self.names.index("O") if "O" in self.names else 0
        counts = count_spans(np.where(known, gold_tags, outside), tags, self.names, text, len(items)).sum(0)
        return float(2 * counts[0] / max(1, counts[1] + counts[2]))


class TokenBatch(NamedTuple):
    inputs: dict[str, Tensor]  # of the model, on the CPU
    words: list[NDArray[np.int64]]  # the first token of each word, -1 if it was cut; empty for whole texts
    marked: Tensor  # (n, T) 1 at the tokens of the marked word


def read_dataset(source: str, task: str) -> TuningData:
    """The items of a dataset; `task` is a kind, or "auto" for the name of its folder."""
    files = locate_parts(Path(source))
    kind = _choose_kind(files["train"], task)
    if kind == "roles":
        train, dev, test = ([*_read_roles(files[part])] if part in files else [] for part in ("train", "dev", "test"))
        if not dev:
            fold = fifths([""] * len(train)).tolist()
            train, dev = (
                [item for item, part in zip(train, fold, strict=True) if bool(part) == of] for of in (True, False)
            )
        return TuningData(kind, train, dev, test)
    data = read_data(source, UNITS[kind], multilabel=kind == "multilabel")
    pool = [
        Item((item,) if isinstance(item, str) else tuple(item), tuple(labels))
        for item, labels in zip(data.items, data.labels, strict=True)
    ]
    return TuningData(kind, *([pool[row] for row in rows.tolist()] for rows in (data.train, data.dev, data.test)))


def list_parts(source: str) -> list[Path]:
    """The files of a dataset."""
    return [*locate_parts(Path(source)).values()]


def encode_items(tokenizer: Any, items: Sequence[Item], kind: Kind, length: int) -> TokenBatch:
    """The tokens of items, padded."""
    labels_words = kind in _WORDS
    texts = [" ".join(item.texts) if labels_words else item.texts[0] for item in items]
    second = [item.texts[1] for item in items] if kind == "pairs" else None
    encoded = tokenizer(
        texts, second, truncation=True, max_length=length, padding=True, return_offsets_mapping=labels_words,
        return_tensors="pt",
    )  # fmt: skip
    offsets = encoded.pop("offset_mapping", None)
    words: list[NDArray[np.int64]] = []
    marked = torch.zeros_like(encoded["input_ids"])
    for row, item in enumerate(items if labels_words else ()):
        spans = offsets[row].numpy()
        lengths = np.array([len(word) for word in item.texts])
        ends = np.cumsum(lengths + 1) - 1
        words.append(_find_first(spans, ends - lengths, ends))
        if item.marked >= 0:
            begin, end = ends[item.marked] - lengths[item.marked], ends[item.marked]
            marked[row, torch.from_numpy((spans[:, 1] > begin) & (spans[:, 0] < end) & (spans[:, 1] > spans[:, 0]))] = 1
    return TokenBatch(dict(encoded), words, marked)


def _find_first(spans: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first token that overlaps each word; -1 if none does."""
    filled = np.flatnonzero(spans[:, 1] > spans[:, 0])
    place = np.searchsorted(spans[filled, 1], begins, side="right")
    inside = place < len(filled)
    first = filled[np.minimum(place, len(filled) - 1)] if len(filled) else np.zeros(len(begins), np.int64)
    return np.where(inside & (spans[first, 0] < ends), first, -1)


def _choose_kind(file: Path, task: str) -> Kind:
    name = file.resolve().parent.name if task == "auto" else task
    for kind in KINDS:
        if name == kind:
            return kind
    folders = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
    cure = f"name its kind with task=, one of {', '.join(KINDS)}"
    raise UsageError.expected(f"a file in a folder named {folders}", repr(name), where=str(file), cure=cure)


def _read_roles(path: Path) -> Iterator[Item]:
    for sentence in read_marked(path):
        if sentence.kind != "roles":
            raise DatasetError.expected("predicates", sentence.kind, path=path)
        predicates: dict[int, list[tuple[int, int, str]]] = {}
        for at, _, first, last, role in sentence.marks:
            predicates.setdefault(at, []).append((first, last, role))
        for at, spans in predicates.items():
            tags = ["O"] * len(sentence.words)
            for first, last, role in spans:
                tags[first : last + 1] = [f"B-{role}"] + [f"I-{role}"] * (last - first)
            yield Item(sentence.words, tuple(tags), at)


READERS: dict[Kind, Callable[[Path], Iterator[Item]]] = {
    "classification": lambda path: (Item((text,), (label,)) for label, text in read_labelled(path)),
    "multilabel": lambda path: (Item((text,), tuple(label.split(","))) for label, text in read_labelled(path)),
    "pairs": lambda path: (Item(pair[1:3], (pair.label,), kinds=pair.kinds) for pair in read_pairs(path)),
    "tagging": lambda path: (Item(words, tags) for words, tags in read_tagged(path)),
    "roles": _read_roles,
}
