"""Labelled data that heads learn from: the datasets of `evaluate`, a table of the user, or pairs in memory.

Texts: `label text` per line, several labels joined by commas (`multilabel`), or a CSV or TSV file with a header that
names a column `text` and a column `label`, or JSON lines with these fields.
Tokens: CoNLL-U, or a word and its tag per line. Pairs: `label`, text and text, separated by tabs. Spans: the files of
`span_questions.py`. A dataset is one file, or `NAME.train.ext` with `NAME.dev.ext` and `NAME.test.ext`; without a
development file, a fifth of the training items is used for development.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stillvec.errors import DatasetError, UsageError
from stillvec.files import check_is_text, file_digest, inner_suffix, open_bytes, read_lines, read_records
from stillvec.files.path_names import files_in
from stillvec.heads.dataset_files import read_numbered, read_pairs
from stillvec.heads.marked_texts import number_sentences, parse_marked_text, read_marked_texts
from stillvec.heads.splits import FOLDS, fifths, find_parts, part_of
from stillvec.heads.treebank import are_spans, read_tagged
from stillvec.input_checks import describe
from stillvec.numerics.array_types import Floats, Rows

Unit = Literal["text", "tokens", "pair", "span"]
Item = tuple[Any, tuple[str, ...]]  # what is read, and its label, labels, or the tags of its words
_SUFFIXES = (".txt", ".tsv", ".csv", ".conllu", ".conll", ".jsonl")
_LABELS = ("label", "labels", "category", "class")
_SAMPLE = 16_384  # bytes, from which the kind of a file is seen
_PARTS = ("train", "dev", "test")
_JOINED = ("items", "labels", "files")
_ITEMS = {"text": "a text", "pair": "a pair of texts", "tokens": "a list of words"}
_HEAD_BYTES = 4096  # that show whether a file is text


@dataclass(frozen=True)
class LabelledData:
    """Items, their labels, and which of them are for training, development and testing."""

    unit: Unit
    items: tuple[Any, ...]
    labels: tuple[tuple[str, ...], ...]  # of each item; of tokens, the tag of each
    train: Rows
    dev: Rows
    test: Rows
    multilabel: bool = False
    files: tuple[Path, ...] = ()
    datasets: Rows | None = None  # (n,) the number of that of each item, if there are several
    question: str = ""  # of spans, that which the labels answer, if it is not the first one about its files

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The labels in training and development, sorted."""
        learnt = np.concatenate([self.train, self.dev]).tolist()
        return tuple(sorted({*chain.from_iterable(self.labels[row] for row in learnt)}))

    @cached_property
    def has_spans(self) -> bool:
        return self.unit == "tokens" and are_spans(self.names)

    def targets(self) -> Floats:
        """Which labels each item has (n, k); all zero for labels that are not learnt."""
        place = {name: number for number, name in enumerate(self.names)}
        targets = np.zeros((len(self.items), len(self.names)))
        for row, labels in enumerate(self.labels):
            targets[row, [place[label] for label in labels if label in place]] = 1
        return targets

    def digest(self) -> str:
        """Of the files, or of the items."""
        from stillvec.files import digest

        if self.files:
            return " ".join(map(file_digest, self.files))
        return digest(repr(item).encode() for item in zip(self.items, self.labels, strict=True))


def read_data(
    source: str | os.PathLike[str] | Iterable[tuple[Any, Any]],
    unit: Unit,
    *,
    multilabel: bool = False,
    text_field: str = "text",
    label_field: str | None = None,
    question: str = "",
    draw: int = 0,
) -> LabelledData:
    """Read a dataset, given by a file, by the path without `.train.txt`, or by (item, label) pairs; or several.

    Of spans, `question` and `draw` are those of `span_questions.ask`.
    """
    if not isinstance(source, str | os.PathLike):
        source = [*source]
        if source and all(isinstance(each, str | os.PathLike) for each in source):
            settings: dict[str, Any] = {"text_field": text_field, "label_field": label_field, "question": question}
            settings["draw"] = draw
            return join_data([read_data(each, unit, multilabel=multilabel, **settings) for each in source])
        pairs = [(item, _as_labels(labels)) for item, labels in map(_check_pair, source)]
        if not pairs:
            raise DatasetError.expected("labelled items", "none")
        for number, (item, labels) in enumerate(pairs):
            _check_item(item, labels, unit, f"on[{number}]", multilabel=multilabel)
        if unit == "span":
            pairs = [(parse_marked_text(item), labels) for item, labels in pairs]
        return _divide({"train": pairs}, unit, multilabel, (), question)
    files = locate_parts(Path(source))
    for file in files.values():
        with open_bytes(file, DatasetError) as stream:
            check_is_text(stream.read(_HEAD_BYTES), str(file), DatasetError)
    several = multilabel or files["train"].parent.name == "multilabel"
    readers: dict[Unit, Callable[[Path], Iterable[Item]]] = {
        "text": lambda path: _read_texts(path, several, text_field, label_field),
        "tokens": _read_tokens,
        "pair": _read_pairs,
        "span": lambda path: read_marked_texts(path, question, draw),
    }
    parts = {part: [*readers[unit](file)] for part, file in files.items()}
    return _divide(parts, unit, several, tuple(files[part] for part in _PARTS if part in files), question)


def _check_pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise DatasetError.expected("pairs of an item and its label", repr(value)[:60])
    return value[0], value[1]


def _check_item(item: Any, labels: tuple[str, ...], unit: Unit, where: str, *, multilabel: bool) -> None:
    strings = [item] if unit == "text" else item
    if unit != "span":
        several = not isinstance(strings, str) and isinstance(strings, Sequence)
        if not several or not all(isinstance(text, str) for text in strings) or (unit == "pair" and len(item) != 2):
            raise UsageError.expected(_ITEMS[unit], describe(item), where=where)
    if unit == "tokens" and len(labels) != len(item):
        raise UsageError.expected(f"{len(item)} tags of {len(item)} words", len(labels), where=where)
    if unit in ("text", "pair") and not multilabel and len(labels) != 1:
        cure = "several need multilabel=True"
        raise UsageError.expected("one label", f"{len(labels)} labels", where=where, cure=cure)


def locate_parts(path: Path) -> dict[str, Path]:
    """The file of each part of a dataset; `path` is one of them, or their name without part and ending."""
    if not path.exists():
        named = [file for file in files_in(path.parent, _SUFFIXES) if _is_part_of(file, path.name)]
        if not named:
            raise DatasetError.not_found(path, "a dataset: FILE, or NAME with NAME.train.txt and NAME.test.txt")
        path = named[0]
    if path.is_dir():
        raise DatasetError.expected("a file, or the name of a dataset", "a folder", path=path, code="is-folder")
    parts = find_parts(path) or {"train": path}
    if "train" not in parts:
        raise DatasetError.expected("a train file of the same name", path.name, path=path)
    return parts


def _is_part_of(file: Path, name: str) -> bool:
    rest, part = part_of(file)
    return rest.rstrip(".") == name.lower() and bool(part)


def _divide(
    parts: dict[str, list[Item]], unit: Unit, multilabel: bool, files: tuple[Path, ...], question: str
) -> LabelledData:
    starts: dict[str, Rows] = {}
    pool: list[Item] = []
    for part in _PARTS:
        starts[part] = np.arange(len(pool), len(pool) + len(parts.get(part, ())))
        pool += parts.get(part, [])
    train, dev = starts["train"], starts["dev"]
    if len(train) < 2 * FOLDS:
        raise DatasetError.expected(f"at least {2 * FOLDS} training items", len(train), path=next(iter(files), None))
    if not len(dev):
        fifth = fifths([labels if unit == "text" else "" for _, labels in parts["train"]])
        if unit == "span":  # spans of one sentence stay together
            sentences, sentence = number_sentences([item for item, _ in parts["train"]])
            if len(sentences) < FOLDS:
                file = next(iter(files), None)
                raise DatasetError.expected(f"at least {FOLDS} different sentences", len(sentences), path=file)
            fifth = fifths([""] * len(sentences))[sentence]
        train, dev = train[fifth != 0], train[fifth == 0]
    items, labels = zip(*pool, strict=True)
    if unit == "span":
        multilabel = any(len(labels[row]) > 1 for row in np.concatenate([train, dev]).tolist())
    data = LabelledData(unit, items, labels, train, dev, starts["test"], multilabel, files, question=question)
    wrong = next((name for name in data.names if not name.strip() or "\n" in name), None)
    if wrong is not None:
        raise DatasetError.expected("labels of one line", repr(wrong)[:60], path=next(iter(files), None))
    if len(data.names) < 2:
        raise DatasetError.expected("two labels or more", len(data.names), path=next(iter(files), None))
    return data


def join_data(parts: Sequence[LabelledData]) -> LabelledData:
    """The items of several datasets, one after the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = [len(part.items) for part in parts]
    starts = np.cumsum(sizes) - sizes
    train, dev, test = (
        np.concatenate([getattr(part, name) + start for part, start in zip(parts, starts, strict=True)])
        for name in _PARTS
    )
    items, labels, files = (tuple(chain.from_iterable(getattr(part, name) for part in parts)) for name in _JOINED)
    several, numbers = any(part.multilabel for part in parts), np.repeat(np.arange(len(parts)), sizes)
    question = parts[0].question
    return LabelledData(parts[0].unit, items, labels, train, dev, test, several, files, numbers, question)


def _as_labels(labels: Any) -> tuple[str, ...]:
    if isinstance(labels, str):
        return (labels,)
    if isinstance(labels, Sequence) and all(isinstance(label, str) for label in labels):
        return tuple(labels)
    raise UsageError.expected("a label, or a list of labels", repr(labels)[:60], where="on")


def _read_texts(path: Path, several: bool, text_field: str, label_field: str | None) -> Iterator[Item]:
    for line, label, text in _read_rows(path, text_field, label_field):
        labels = tuple(part.strip() for part in label.split(",")) if several else (label,)
        if not all(labels):
            raise DatasetError.expected("labels joined by commas", repr(label[:40]), path=path, line=line)
        yield text, labels


def _read_rows(path: Path, text_field: str, label_field: str | None) -> Iterator[tuple[int, str, str]]:
    """(line, label, text): a table with a header, or a label, a space and a text per line."""
    suffix = inner_suffix(path)
    wanted = (label_field,) if label_field else _LABELS
    if suffix == ".jsonl":
        yield from _read_objects(path, text_field, wanted)
        return
    if suffix in (".csv", ".tsv"):
        records = read_records(path, DatasetError, "," if suffix == ".csv" else "\t")
        first, header = next(records, (1, []))
        column = next((name for name in wanted if name in header), None)
        if text_field in header and column is not None:
            yield from _read_columns(path, records, header, (text_field, column))
            return
        if suffix == ".csv" or label_field:
            what = f"a header with {text_field!r} and {' or '.join(map(repr, wanted))}"
            cure = "name others with --text-field and --label-field"
            raise DatasetError.expected(what, repr(",".join(header))[:80], path=path, line=first, cure=cure)
    _refuse_other_units(path)
    yield from read_numbered(path)


def _refuse_other_units(path: Path) -> None:
    """Refuse a file of tagged words or of pairs, whose lines would be read as a label and a text each."""
    lines = _sample_lines(path)
    rows = [[*filter(None, line.split("\t"))] for line in lines if line.strip() and not line.startswith("#")]
    what, n_blank = "a label and a text per line", sum(not line.strip() for line in lines)
    if n_blank and all(len(row) > 1 and " " not in row[0] for row in rows):
        raise DatasetError.expected(what, "a word and its tags", path=path, cure="choose --head tagger")
    if rows and not n_blank and all(len(row) > 2 for row in rows):
        cure = "choose --head pair, or give a header with the columns text and label"
        raise DatasetError.expected(what, "a label and two texts", path=path, cure=cure)


def _read_tokens(path: Path) -> list[Item]:
    """Refuse a file of texts, which would be one sentence: lines of any number of words, none of them blank."""
    lines = [] if inner_suffix(path) == ".conllu" else _sample_lines(path)
    rows = [line.split("\t") if "\t" in line else line.split() for line in lines]
    if all(rows) and (len({*map(len, rows)}) > 1 or any(" " in row[-1].strip() for row in rows)):
        what = "a word and its tag per line, and a blank line after each sentence"
        cure = "for texts with labels, choose another head, such as --head cnn"
        raise DatasetError.expected(what, repr(lines[0][:40]), path=path, line=1, cure=cure)
    return [*read_tagged(path)]


def _sample_lines(path: Path) -> list[str]:
    """The first lines of a file, without one that may be cut."""
    with open_bytes(path, DatasetError) as stream:
        content: bytes = stream.read(_SAMPLE)
    return content.decode("utf-8", "replace").splitlines()[:-1]


def _read_objects(path: Path, text_field: str, wanted: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    for line, content in read_lines(path, DatasetError):
        try:
            record = json.loads(content) if content.strip() else {}
        except (ValueError, RecursionError):
            record = None
        if record == {}:
            continue
        fields = record if isinstance(record, dict) else {}
        label, text = next((fields[name] for name in wanted if name in fields), None), fields.get(text_field)
        if not isinstance(label, str | int) or label == "" or not isinstance(text, str):
            what = f"a JSON object with {text_field!r} and {' or '.join(map(repr, wanted))}"
            raise DatasetError.expected(what, repr(content[:80]), path=path, line=line)
        yield line, str(label), text


def _read_columns(
    path: Path, records: Iterator[tuple[int, list[str]]], header: list[str], names: tuple[str, str]
) -> Iterator[tuple[int, str, str]]:
    text, label = (header.index(name) for name in names)
    for line, fields in records:
        if len(fields) != len(header):
            raise DatasetError.expected(f"{len(header)} fields", len(fields), path=path, line=line)
        if not fields[label]:
            raise DatasetError.expected("a label", "an empty field", where=names[1], path=path, line=line)
        yield line, fields[label], fields[text]


def _read_pairs(path: Path) -> Iterator[Item]:
    return (((pair.first, pair.second), (pair.label,)) for pair in read_pairs(path))
