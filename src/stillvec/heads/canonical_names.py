"""RESEMBLE: an answer that depends less on names, without training (Balasubramanian et al. 2020).

    P(y|x) ∝ (1 - c) P_T(y|x) + c (P_T(y|x) Π_m P(y|x^m))^(1 / (M + 1)),    P_T ∝ P^(1/T)

`x^m` is the text with canonical names in the place of its names, the same in both texts of a pair; of several names of
a text each gets another one. `c`, how sure it is that these are names, is 1 for names that are found in a list. A text
without a name keeps its answer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.heads.dataset_files import lines
from stillvec.input_checks import check_arguments, check_strings
from stillvec.numerics.array_types import Rows
from stillvec.registry import check_least, check_positive

_WORD = re.compile(r"\w+")
_SMALLEST = 1e-12  # probability

Texts = tuple[str, ...]


@dataclass(frozen=True)
class NameFinder:
    """Finds the names of a list in texts: upper case counts, whole words only, the longest first."""

    names: tuple[str, ...]

    @cached_property
    def by_word(self) -> dict[str, list[str]]:
        """Their first word → names, the longest first."""
        by_word: dict[str, list[str]] = {}
        for name in sorted(self.names, key=len, reverse=True):
            if first := _WORD.match(name):
                by_word.setdefault(first[0], []).append(name)
        return by_word

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        end = 0
        for word in _WORD.finditer(text):
            start = word.start()
            for name in self.by_word.get(word[0], ()) if start >= end else ():
                if text.startswith(name, start) and not _WORD.match(text, start + len(name)):
                    end = start + len(name)
                    yield start, end
                    break


@dataclass(frozen=True)
class CanonicalNames:
    """Names, and those that stand for all of them."""

    names: tuple[str, ...]
    canonical: tuple[str, ...]  # names that the head answers well for, such as frequent ones
    temperature: float = 2.0  # T, of the answer with the name itself
    confidence: float = 1.0  # c

    def __post_init__(self) -> None:
        check_positive(self, "temperature")
        check_least(self, confidence=0)
        if not self.canonical:
            raise UsageError.expected("a canonical name or more", "none", where="canonical")
        if self.confidence > 1:
            raise UsageError.expected("at most 1", self.confidence, where="setting 'confidence'")

    @classmethod
    def read(cls, path: str | os.PathLike[str], canonical: Iterable[str] = (), n: int = 3) -> CanonicalNames:
        """The names of a file, one per line or in the first column; by default its first `n` are canonical."""
        check_arguments(CanonicalNames.read, locals())
        names = read_names(Path(path))
        chosen = tuple(check_strings(canonical, "canonical", what="names"))
        return cls(names, chosen or names[:n])

    def vary(self, items: Sequence[Texts]) -> tuple[list[Texts], Rows]:
        """The items that have a name, with canonical names in them, and the number of the item of each (v,)."""
        versions: list[Texts] = []
        numbers: list[int] = []
        for number, texts in enumerate(items):
            found = [*dict.fromkeys(text[start:end] for text in texts for start, end in self._finder.spans(text))]
            replaced = found[: len(self.canonical)]
            kept = {*found[len(self.canonical) :]}
            for shift in range(len(self.canonical) if found else 0):
                order = [name for name in (*self.canonical[shift:], *self.canonical[:shift]) if name not in kept]
                mapping = dict(zip(replaced, order, strict=False))
                versions.append(tuple(replace_names(text, self._finder.spans(text), mapping) for text in texts))
                numbers.append(number)
        return versions, np.array(numbers, np.int64)

    def combine(self, own: NDArray[Any], others: NDArray[Any], item: Rows) -> NDArray[np.float64]:
        """The probabilities (n, ..., k) from those of the items and of their versions (v, ..., k)."""
        counts = np.bincount(item, minlength=len(own)).reshape(-1, *[1] * (own.ndim - 1))  # M of each item
        logs = np.log(np.maximum(own, _SMALLEST)) / self.temperature
        logs -= np.logaddexp.reduce(logs, axis=-1, keepdims=True)
        sums = logs.copy()
        np.add.at(sums, item, np.log(np.maximum(others, _SMALLEST)))
        mixed = (1 - self.confidence) * np.exp(logs) + self.confidence * np.exp(sums / (counts + 1))
        return np.asarray(np.where(counts > 0, mixed / mixed.sum(axis=-1, keepdims=True), own), np.float64)

    @cached_property
    def _finder(self) -> NameFinder:
        return NameFinder((*self.names, *self.canonical))


def replace_names(text: str, spans: Iterator[tuple[int, int]], mapping: Mapping[str, str]) -> str:
    """A text with others in the place of the names that are found in it; names that are not in the mapping stay."""
    pieces, last = [], 0
    for start, end in spans:
        pieces += [text[last:start], mapping.get(text[start:end], text[start:end])]
        last = end
    return "".join([*pieces, text[last:]])


def read_names(path: Path) -> tuple[str, ...]:
    """The distinct names of a file, at least two: lines, or their first column."""
    names = dict.fromkeys(line.partition("\t")[0].strip() for _, line in lines(path))
    names.pop("", None)
    if len(names) < 2:
        raise DatasetError.expected("two names or more, one per line", len(names), path=path)
    return tuple(names)
