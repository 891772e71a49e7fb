"""Datasets in parts: which files belong together, and the training, development and test items of each round.

A dataset is `name.test.ext` with `name.train.ext` and optionally `name.dev.ext`, or one file. Without a development
file, a fifth of the training items is used; without a test file, five-fold cross-validation: three fifths for training,
one for development, one for testing. Fifths are stratified by label and drawn with a fixed seed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.dataset_files import files_in
from stillvec.files import inner_name, inner_suffix

FOLDS = 5
_PART = re.compile(r"(?<![a-z])(train|dev|valid|validation|test)(?![a-z])")
_NAMES = {"train": "train", "dev": "dev", "valid": "dev", "validation": "dev", "test": "test"}

Rows = NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True)
class Round:
    """Positions among all items, the tested ones first."""

    train: Rows
    dev: Rows
    test: Rows  # all of them smaller than the number of items

    @property
    def both(self) -> Rows:
        """The training data once the settings are chosen."""
        return np.concatenate([self.train, self.dev])


def pool_parts(
    path: Path, read: Callable[[Path], Iterable[T]], label: Callable[[T], Hashable], most: int | None
) -> tuple[list[T], int, tuple[Round, ...]]:
    """All items of a dataset, the tested ones first; the number of tested items; and the rounds."""
    files = parts_beside(path)
    parts: dict[str, list[T]] = {part: [*read(files[part])] for part in ("test", "train", "dev") if part in files}
    pool = [item for items in parts.values() for item in items]
    sizes = {part: len(items) for part, items in parts.items()}
    order, divided = with_tested_first(rounds(sizes, [label(item) for item in pool], path, most))
    return [pool[number] for number in order], sum(len(split.test) for split in divided), divided


def part_of(path: Path) -> tuple[str, str]:
    """The name of a file without its part, and the part: stsb.test → (stsb., test)."""
    name = Path(inner_name(path)).stem.lower()
    parts = _PART.findall(name)
    return _PART.sub("", name), _NAMES[parts[-1]] if parts else ""


def whole_datasets(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """One file per dataset: the test file, else the training file, else the file itself."""
    found = files_in(folder, suffixes)
    there = {(*part_of(path), inner_suffix(path)) for path in found}

    def stands_behind(path: Path) -> bool:
        rest, part = part_of(path)
        better = {"train": ("test",), "dev": ("test", "train")}.get(part, ())
        return any((rest, each, inner_suffix(path)) in there for each in better)

    return [path for path in found if not stands_behind(path)]


def parts_beside(path: Path) -> dict[str, Path]:
    """Part → file, of the dataset that `path` belongs to; a dataset in one file is all "train"."""
    rest, part = part_of(path)
    alike = files_in(path.parent, (inner_suffix(path),))
    found = {part_of(each)[1]: each for each in alike if part and part_of(each)[0] == rest}
    found.pop("", None)
    if "test" in found and "train" not in found:
        raise DatasetError.expected("a file of the same name with train", "only a test file", path=path)
    return found if "test" in found else {"train": path}


def rounds(
    sizes: Mapping[str, int], labels: Sequence[Hashable], path: Path, most: int | None = None
) -> tuple[Round, ...]:
    """The rounds of a dataset in the order test, train, dev; with `most` only one, with that many training items."""
    test, train = sizes.get("test", 0), sizes["train"]
    fifth = fifths(labels[test : test + train])
    if len(fifth) < 2 * FOLDS:
        raise DatasetError.expected(f"at least {2 * FOLDS} training items", len(fifth), path=path)
    if "dev" in sizes:
        dev = test + train + np.arange(sizes["dev"])
        whole = [Round(test + np.arange(train), dev, np.arange(test))]
    elif test:
        whole = [Round(test + np.flatnonzero(fifth), test + np.flatnonzero(fifth == 0), np.arange(test))]
    else:
        whole = [_fold(fifth, number) for number in range(FOLDS)]
    return tuple(whole) if most is None else (_reduce(whole[0], most),)


def with_tested_first(divided: Sequence[Round]) -> tuple[Rows, tuple[Round, ...]]:
    """The order with the tested items first and without unused ones, and the rounds in that order."""
    tested = np.sort(np.concatenate([split.test for split in divided]))
    used = np.unique(np.concatenate([split.both for split in divided]))
    order = np.concatenate([tested, np.setdiff1d(used, tested)])
    place = np.full(int(order.max()) + 1, -1)
    place[order] = np.arange(len(order))
    return order, tuple(Round(place[split.train], place[split.dev], place[split.test]) for split in divided)


def fifths(labels: Sequence[Hashable], seed: int = 0) -> Rows:
    """The fifth of each item (n,): items of each label are distributed evenly in random order."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(labels))
    ranks = {label: rank for rank, label in enumerate(dict.fromkeys(labels))}
    place = np.array([ranks[label] for label in labels], np.int64)
    order = order[np.argsort(place[order], kind="stable")]
    dealt = np.empty(len(labels), np.int64)
    dealt[order] = np.arange(len(labels)) % FOLDS
    return dealt


def _fold(fifth: Rows, number: int) -> Round:
    dev = (number + 1) % FOLDS
    train = np.flatnonzero((fifth != number) & (fifth != dev))
    return Round(train, np.flatnonzero(fifth == dev), np.flatnonzero(fifth == number))


def _reduce(each: Round, most: int) -> Round:
    generator = np.random.default_rng(0)

    def some(rows: Rows, number: int) -> Rows:
        return rows if len(rows) <= number else np.sort(generator.permutation(rows)[:number])

    return Round(some(each.train, most), some(each.dev, most // 4), each.test)
