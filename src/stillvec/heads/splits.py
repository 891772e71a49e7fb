"""Train, development and test splits: the files of a dataset and the items of each round.

A dataset is `name.test.ext` with `name.train.ext` and optionally `name.dev.ext`, or one file. Without a development
file, a fifth of the training items is used for development; without a test file, five-fold cross-validation: three
fifths for training, one for development, one for testing. Fifths are stratified by label, with a fixed seed.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from stillvec.errors import DatasetError
from stillvec.files import inner_name, inner_suffix
from stillvec.files.path_names import files_in
from stillvec.numerics.array_types import Rows

FOLDS = 5
_PART = re.compile(r"(?<![a-z])(train|dev|val|valid|validation|test)(?![a-z])")
_NAMES = {"train": "train", "dev": "dev", "val": "dev", "valid": "dev", "validation": "dev", "test": "test"}

T = TypeVar("T")


@dataclass(frozen=True)
class Round:
    """Item indices of one train/dev/test split; test items precede all others."""

    train: Rows
    dev: Rows
    test: Rows  # indices below the number of test items

    @property
    def both(self) -> Rows:
        """Training and development items, for the final fit."""
        return np.concatenate([self.train, self.dev])


def pool_parts(
    path: Path,
    read: Callable[[Path], Iterable[T]],
    label: Callable[[T], Hashable],
    most: int | None,
    files: Mapping[str, Path] | None = None,
) -> tuple[list[T], int, tuple[Round, ...]]:
    """Items of all parts of a dataset with the test items first, the number of test items, and the rounds.

    `files` are other parts than those beside `path`.
    """
    files = files or parts_beside(path)
    parts: dict[str, list[T]] = {part: [*read(files[part])] for part in ("test", "train", "dev") if part in files}
    pool = [item for items in parts.values() for item in items]
    sizes = {part: len(items) for part, items in parts.items()}
    order, splits = with_tested_first(rounds(sizes, [label(item) for item in pool], path, most))
    return [pool[number] for number in order], sum(len(split.test) for split in splits), splits


def part_of(path: Path) -> tuple[str, str]:
    """Split a file name into the dataset and its part: stsb.test → (stsb., test)."""
    name = Path(inner_name(path)).stem.lower()
    parts = _PART.findall(name)
    return _PART.sub("", name), _NAMES[parts[-1]] if parts else ""


def whole_datasets(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """One file per dataset: the test file, else the training file, else the file itself."""
    paths = files_in(folder, suffixes)
    parts = {(*part_of(path), inner_suffix(path)) for path in paths}

    def is_superseded(path: Path) -> bool:
        rest, part = part_of(path)
        preferred = {"train": ("test",), "dev": ("test", "train")}.get(part, ())
        return any((rest, name, inner_suffix(path)) in parts for name in preferred)

    return [path for path in paths if not is_superseded(path)]


def find_parts(path: Path) -> dict[str, Path]:
    """Map part to file for the dataset of `path`; none for a dataset in a single file."""
    rest, part = part_of(path)
    siblings = files_in(path.parent, (inner_suffix(path),))
    parts = {part_of(file)[1]: file for file in siblings if part and part_of(file)[0] == rest}
    parts.pop("", None)
    return parts


def parts_beside(path: Path) -> dict[str, Path]:
    """Map part to file for the dataset of `path`; a dataset in a single file is all "train"."""
    parts = find_parts(path)
    if "test" in parts and "train" not in parts:
        raise DatasetError.expected("a train file of the same name", "only a test file", path=path)
    return parts if "test" in parts else {"train": path}


def rounds(
    sizes: Mapping[str, int], labels: Sequence[Hashable], path: Path, most: int | None = None
) -> tuple[Round, ...]:
    """Rounds over items in the order test, train, dev; with `most`, one round of at most that many training items."""
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
    """Reorder items: test items first, unused items removed. Returns the order and the reindexed rounds."""
    tested = np.sort(np.concatenate([split.test for split in divided]))
    used = np.unique(np.concatenate([split.both for split in divided]))
    order = np.concatenate([tested, np.setdiff1d(used, tested)])
    place = np.full(int(order.max()) + 1, -1)
    place[order] = np.arange(len(order))
    return order, tuple(Round(place[split.train], place[split.dev], place[split.test]) for split in divided)


def fifths(labels: Sequence[Hashable], seed: int = 0) -> Rows:
    """Assign each item to a fifth (n,), stratified by label, in random order."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(labels))
    ranks = {label: rank for rank, label in enumerate(dict.fromkeys(labels))}
    place = np.array([ranks[label] for label in labels], np.int64)
    order = order[np.argsort(place[order], kind="stable")]
    fold = np.empty(len(labels), np.int64)
    fold[order] = np.arange(len(labels)) % FOLDS
    return fold


def _fold(fifth: Rows, number: int) -> Round:
    dev = (number + 1) % FOLDS
    train = np.flatnonzero((fifth != number) & (fifth != dev))
    return Round(train, np.flatnonzero(fifth == dev), np.flatnonzero(fifth == number))


def _reduce(each: Round, most: int) -> Round:
    generator = np.random.default_rng(0)

    def sample(rows: Rows, number: int) -> Rows:
        return rows if len(rows) <= number else np.sort(generator.permutation(rows)[:number])

    return Round(sample(each.train, most), sample(each.dev, most // 4), each.test)
