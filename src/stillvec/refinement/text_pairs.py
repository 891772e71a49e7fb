"""Vectors of words trained so that the means of two texts that mean the same are near (InfoNCE).

    u_i, v_i    the mean vectors of the two texts of pair i of a batch
    L = mean over i of -log (exp(cos(u_i, v_i) / t) / sum over j of exp(cos(u_i, v_j) / t)), and the same from v to u

The other texts of the batch are the negatives; those that are the same text as u_i or v_i are left out. With `toward`,
a file of vectors, one per line of `on`, which then has one text: `L = mean of 1 - cos(u_i, vector of i)`.

`train=words` changes the vectors of the words that occur; `train=map` one matrix, which all words are multiplied with.
Adam, whose moments are of the rows of a batch only. A tenth of the pairs is held out, and the best epoch on it is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.files import read_lines
from stillvec.files.numpy_file import map_numbers
from stillvec.numerics import unit_rows
from stillvec.registry import check_least, check_positive
from stillvec.vectors import WordVectors
from stillvec.vocabulary import WordMatcher

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_HELD_OUT = 10  # one of so many pairs
_BETAS, _EPSILON = (0.9, 0.999), 1e-8
_LEAST = 20  # pairs


@dataclass(frozen=True)
class TextPairs:
    SUMMARY: ClassVar[str] = "trained on pairs of texts that mean the same"
    PAPERS: ClassVar[tuple[str, ...]] = ()

    on: tuple[str, ...]  # files with the texts that mean the same on a line, separated by tabs
    toward: str | None = None  # a file .npy with the vector of the text of each line
    train: Literal["words", "map"] = "words"  # the vectors of words, or one matrix for all
    temperature: float = 0.05  # t, which the cosines are divided by
    epochs: int = 3
    batch: int = 256  # pairs per step; all but one are negatives
    rate: float = 0.02  # relative to the root mean square of a number of the vectors
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(self, "temperature", "rate")
        check_least(self, epochs=0, batch=2, seed=0)
        if self.train not in ("words", "map"):
            raise UsageError.unknown("what is trained", self.train, ("words", "map"), where="train")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        if not self.epochs:
            return vectors
        model = _Model(self, vectors, read_texts(self.on, single=self.toward is not None))
        if self.toward is not None:
            model.set_goals(self.toward)
        return vectors.with_matrix(np.array(model.fit()))  # not the input itself, if no epoch is better

    def loss(self, before: WordVectors, after: WordVectors) -> dict[str, float]:
        """The loss of the pairs that were held out, before and after."""
        found = {}
        for name, vectors in (("held out before", before), ("held out after", after)):
            model = _Model(self, vectors, read_texts(self.on, single=self.toward is not None))
            if self.toward is not None:
                model.set_goals(self.toward)
            found[name] = round(model.measure(np.asarray(vectors.matrix, np.float32)), 5)
        return found


def read_texts(files: tuple[str, ...], *, single: bool = False) -> list[tuple[str, ...]]:
    """The pairs of files: each text of a line with the one after it; with `single`, the one text of each line."""
    pairs: list[tuple[str, ...]] = []
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise DatasetError.not_found(path, "a file of texts, those that mean the same separated by tabs")
        for number, line in read_lines(path, DatasetError):
            texts = [text for text in map(str.strip, line.split("\t")) if text]
            if single:
                pairs.append((line.strip(),))
            elif texts:
                if len(texts) < 2:
                    raise DatasetError.expected("two texts separated by a tab", "one", path=path, line=number)
                pairs += pairwise(texts)
    if len(pairs) < _LEAST:
        raise DatasetError.expected(f"at least {_LEAST} pairs", len(pairs), path=files[0] if files else None)
    return pairs


class _Model:
    """The texts as bags of rows, and the loss with its gradient."""

    def __init__(self, settings: TextPairs, vectors: WordVectors, pairs: list[tuple[str, ...]]) -> None:
        self.settings, self.matrix = settings, np.asarray(vectors.matrix, np.float32)
        matcher = WordMatcher(vectors.vocabulary)
        sides = [[pair[side] for pair in pairs] for side in range(len(pairs[0]))]
        self.bags = [_read_bags(matcher, texts) for texts in sides]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(text for side in sides for text in side))}
        self.numbers = [np.array([numbers[text] for text in side], np.int64) for side in sides]  # equal texts are equal
        known = np.logical_and.reduce([np.array([len(rows) > 0 for rows in bags]) for bags in self.bags])
        order = np.random.default_rng([settings.seed, 1]).permutation(np.flatnonzero(known))
        self.held, self.learnt = np.sort(order[::_HELD_OUT]), np.setdiff1d(order, order[::_HELD_OUT])
        self.goals: Floats | None = None
        if len(self.learnt) < 2:
            raise DatasetError.expected(
                "pairs of texts whose words have vectors", len(self.learnt), path=settings.on[0]
            )

    def set_goals(self, file: str) -> None:
        try:
            goals = map_numbers(file)
        except ValueError as error:
            raise DatasetError.expected("an array of vectors (.npy)", str(error), path=file) from None
        shape = len(self.bags[0]), self.matrix.shape[1]
        if goals.shape != shape:
            raise DatasetError.expected(f"an array of {shape}", goals.shape, path=file)
        with np.errstate(over="ignore"):  # zero, as a direction that is not known
            self.goals = unit_rows(np.asarray(goals, np.float32))

    def fit(self) -> Floats:
        """The vectors of the best epoch."""
        settings, dim = self.settings, self.matrix.shape[1]
        scale = float(np.sqrt(np.mean(np.square(self.matrix)))) or 1.0
        maps = settings.train == "map"
        table = np.eye(dim, dtype=np.float32) if maps else self.matrix.copy()
        size = settings.rate * (dim**-0.5 if maps else scale)
        moments = np.zeros_like(table), np.zeros_like(table)
        random, number = np.random.default_rng([settings.seed, 2]), 0
        best, kept = self.measure(self.matrix), self.matrix
        for _ in range(settings.epochs):
            order = random.permutation(self.learnt)
            for batch in np.array_split(order, max(1, len(order) // settings.batch)):
                number += 1
                _, used, slope = self.differentiate(table, batch, maps=maps)
                _update(table, moments, used, slope, size, number)
            made = self.matrix @ table if maps else table
            if (loss := self.measure(made)) < best:
                best, kept = loss, made.copy()
        return kept

    def measure(self, matrix: Floats) -> float:
        """The loss of the pairs that are held out."""
        parts = np.array_split(self.held, max(1, len(self.held) // self.settings.batch))
        return float(np.average([self.differentiate(matrix, part)[0] for part in parts], weights=[*map(len, parts)]))

    def differentiate(self, table: Floats, batch: Rows, *, maps: bool = False) -> tuple[float, Rows, Floats]:
        """The loss of pairs, the rows of the table that it depends on, and its gradient for these."""
        rows = [np.concatenate([bags[pair] for pair in batch]) for bags in self.bags]
        text = [np.repeat(np.arange(len(batch)), [len(bags[pair]) for pair in batch]) for bags in self.bags]
        words = self.matrix if maps else table
        means = [_mean(words[ids], of, len(batch)) for ids, of in zip(rows, text, strict=True)]
        made = [each @ table for each in means] if maps else means
        units = [unit_rows(each) for each in made]
        loss, slopes = self._differentiate_units(units, batch)
        slopes = [_through_unit(slope, unit, each) for slope, unit, each in zip(slopes, units, made, strict=True)]
        if maps:
            total = sum(mean.T @ slope for mean, slope in zip(means, slopes, strict=True))
            return loss, np.arange(len(table)), np.asarray(total, np.float32)
        ids = np.concatenate(rows)
        shares = [slope[of] / np.bincount(of)[of][:, None] for slope, of in zip(slopes, text, strict=True)]
        used, place = np.unique(ids, return_inverse=True)
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(used)))
        return loss, used, np.asarray(np.add.reduceat(np.concatenate(shares)[order], starts, axis=0), np.float32)

    def _differentiate_units(self, units: list[Floats], batch: Rows) -> tuple[float, list[Floats]]:
        if self.goals is not None:
            goals = self.goals[batch]
            return float(1 - (units[0] * goals).sum(axis=1).mean()), [np.asarray(-goals / len(batch), np.float32)]
        first, second = (numbers[batch] for numbers in self.numbers)
        same = (second[:, None] == second) | (first[:, None] == first) | (first[:, None] == second)
        same &= ~np.eye(len(batch), dtype=bool)
        scores = np.where(same, -np.inf, units[0] @ units[1].T / self.settings.temperature)
        loss, slope = 0.0, np.zeros_like(scores)
        for axis in (1, 0):
            shares = np.exp(scores - scores.max(axis=axis, keepdims=True))
            shares /= shares.sum(axis=axis, keepdims=True)
            loss -= float(np.log(np.maximum(np.diag(shares), 1e-30)).mean()) / 2
            slope += (shares - np.eye(len(batch))) / (2 * len(batch) * self.settings.temperature)
        return loss, [slope @ units[1], slope.T @ units[0]]


def _read_bags(matcher: WordMatcher, texts: list[str]) -> list[Rows]:
    """The rows of the known words of each text."""
    rows, text = matcher.match_rows(texts)
    known = np.asarray(rows) >= 0
    counts = np.bincount(np.asarray(text)[known], minlength=len(texts))
    return np.split(np.asarray(rows)[known].astype(np.int64), np.cumsum(counts)[:-1])


def _mean(words: Floats, of: Rows, n: int) -> Floats:
    starts = np.searchsorted(of, np.arange(n))
    return np.asarray(np.add.reduceat(words, starts, axis=0) / np.bincount(of, minlength=n)[:, None], np.float32)


def _through_unit(slope: Any, unit: Floats, made: Floats) -> Floats:
    """The gradient before rows were made to have length one."""
    length = np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
    return np.asarray((slope - unit * (slope * unit).sum(axis=1, keepdims=True)) / length, np.float32)


def _update(table: Floats, moments: tuple[Floats, Floats], used: Rows, slope: Floats, size: float, step: int) -> None:
    """One step of Adam on some rows."""
    first, second = moments
    first[used] = _BETAS[0] * first[used] + (1 - _BETAS[0]) * slope
    second[used] = _BETAS[1] * second[used] + (1 - _BETAS[1]) * slope**2
    unbiased = [1 - beta**step for beta in _BETAS]
    table[used] -= size / unbiased[0] * first[used] / (np.sqrt(second[used] / unbiased[1]) + _EPSILON)
