"""Pairs of words and their ratings in two files, written after every rating, so that nothing is lost.

proposed/NAME.tsv     all pairs, in the order in which they are shown; `skip` after those that were skipped
similarity/NAME.tsv   the rated ones with their ratings: a dataset as any other
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stillvec.errors import DatasetError, UsageError
from stillvec.files import atomic_file
from stillvec.heads.dataset_files import count_fields, lines

SCALE = {0: "unrelated", 1: "hardly related", 2: "related", 3: "similar", 4: "almost the same"}
_SKIP = "skip"
Pair = tuple[str, str]


@dataclass
class RatingFiles:
    """`RatingFiles.open(folder, name)` reads what is there; `rate` writes."""

    folder: Path
    name: str
    pairs: list[Pair] = field(default_factory=list)
    ratings: dict[int, int | None] = field(default_factory=dict)  # by the number of the pair; None: skipped
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def proposed(self) -> Path:
        return self.folder / "proposed" / f"{self.name}.tsv"

    @property
    def rated(self) -> Path:
        return self.folder / "similarity" / f"{self.name}.tsv"

    @property
    def n_rated(self) -> int:
        return sum(score is not None for score in self.ratings.values())

    @property
    def n_left(self) -> int:
        return len(self.pairs) - len(self.ratings)

    @classmethod
    def open(cls, folder: Path, name: str) -> RatingFiles:
        """The pairs and ratings of a folder; none if it has no such test."""
        files = cls(folder, name)
        if not files.proposed.exists():
            if files.rated.exists():
                raise DatasetError.expected(f"the proposed pairs in {files.proposed}", "none", path=files.rated)
            return files
        for number, fields in _read(files.proposed, (2, 3)):
            if len(fields) == 3 and fields[2] != _SKIP:
                raise DatasetError.expected(
                    f"two words, and {_SKIP!r} or nothing", fields[2], path=files.proposed, line=number
                )
            if len(fields) == 3:
                files.ratings[len(files.pairs)] = None
            files.pairs.append((fields[0], fields[1]))
        place = {frozenset(pair): number for number, pair in enumerate(files.pairs)}
        for number, fields in _read(files.rated, (3,)) if files.rated.exists() else ():
            if fields[2] not in {*map(str, SCALE)}:
                raise DatasetError.expected("a rating from 0 to 4", repr(fields[2]), path=files.rated, line=number)
            if (at := place.get(frozenset(fields[:2]))) is not None:  # others were added by hand, and stay
                files.ratings[at] = int(fields[2])
        return files

    def propose(self, pairs: Sequence[Pair]) -> None:
        """Begin with these pairs."""
        self.pairs = [*pairs]
        self._write(self.proposed, [[*pair] for pair in self.pairs])

    def rate(self, number: int, score: int | None) -> None:
        """Set the rating of a pair, None to skip it, and write it."""
        if not 0 <= number < len(self.pairs):
            raise UsageError.expected(f"a pair from 0 to {len(self.pairs) - 1}", number)
        if score is not None and score not in SCALE:
            raise UsageError.expected("a rating from 0 to 4", score)
        with self._lock:
            before = number in self.ratings and self.ratings[number] is None
            self.ratings[number] = score
            if before or score is None:
                marks = [[_SKIP] if self.ratings.get(at, 0) is None else [] for at in range(len(self.pairs))]
                self._write(self.proposed, [[*pair, *mark] for pair, mark in zip(self.pairs, marks, strict=True)])
            own = {frozenset(pair) for pair in self.pairs}
            kept = (
                [fields for _, fields in _read(self.rated, (3,)) if frozenset(fields[:2]) not in own]
                if self.rated.exists()
                else []
            )
            rated = [[*self.pairs[at], str(score)] for at, score in sorted(self.ratings.items()) if score is not None]
            self._write(self.rated, [*kept, *rated])

    def _write(self, path: Path, rows: Sequence[Sequence[str]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as part:
            part.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def _read(path: Path, sizes: Sequence[int]) -> list[tuple[int, list[str]]]:
    rows = []
    for number, line in lines(path):
        fields = line.split("\t")
        if not line.strip() or line.startswith("#"):
            continue
        if len(fields) not in sizes or not all(fields):
            raise DatasetError.expected("two words and a rating", count_fields(fields), path=path, line=number)
        rows.append((number, fields))
    return rows
