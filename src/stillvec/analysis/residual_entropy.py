"""Residual entropy: how far a code keeps the attributes of what it names apart (Gupta et al. 2020).

`re = min over p of 1/N sum_i H(C_i | z[p_i]) / H(C_i)`: each symbol (bit) of the code z belongs to one of the N
concepts C_i, and p_i are those of concept i. 0: every concept has symbols of its own that determine it (a compositional
code); 1: the symbols say nothing. The paper does not say how it finds the minimum. Here all assignments are tried if
there are at most 4096; otherwise symbols are given one by one to the concept that gains most, then single symbols are
moved, and pairs or all symbols of two concepts exchanged, as long as that helps; the same from a few random
assignments, and the best is kept.

Entropies are plug-in estimates, which are too low if there are few items per cell. `shuffled`, the same with the items
of every concept permuted, says how low by chance; `max_symbols` limits the symbols of a concept, and so the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError

_EXHAUSTIVE = 4096  # assignments
_STARTS = 96  # random ones, times symbols
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ResidualEntropy:
    value: float
    by_concept: tuple[float, ...]  # H(C_i | z[p_i]) / H(C_i)
    symbols: tuple[tuple[int, ...], ...]  # p_i
    shuffled: float  # the value with the items of each concept permuted
    n_items: int


def measure_residual_entropy(
    codes: NDArray[Any], concepts: NDArray[Any], *, max_symbols: int | None = None, seed: int = 0
) -> ResidualEntropy:
    """The residual entropy of codes (n, symbols) about concepts (n, N), both integers; constant concepts are refused.

    Parameters
    ----------
    codes: the symbols of each item, such as bits.
    concepts: the value of each concept of each item.
    max_symbols: at most so many symbols per concept (default: any number).
    seed: of the shuffled items (default: 0).
    """
    if codes.ndim != 2 or concepts.ndim != 2 or len(codes) != len(concepts) or not codes.size or not concepts.size:
        raise UsageError.expected("codes (n, symbols) and concepts (n, N)", f"{codes.shape} and {concepts.shape}")
    symbols, values = (np.stack([_number(column) for column in table.T]) for table in (codes, concepts))
    if not values.max(axis=1).all():
        raise UsageError.expected("concepts that vary", f"concept {int(np.argmin(values.max(axis=1)))} does not")
    limit = min(max_symbols or len(symbols), len(symbols))
    found = _Search(symbols, values, limit).run()
    random = np.random.default_rng(seed)
    shuffled = _Search(symbols, np.stack([random.permutation(column) for column in values]), limit)
    by_concept = tuple(found.evaluate(concept, part) for concept, part in enumerate(found.parts))
    parts = tuple(tuple(sorted(part)) for part in found.parts)
    return ResidualEntropy(float(np.mean(by_concept)), by_concept, parts, shuffled.run().total(), len(codes))


class _Search:
    """The assignment of symbols to concepts; `parts[i]` are the symbols of concept i."""

    def __init__(self, symbols: Ints, concepts: Ints, limit: int) -> None:
        self.symbols, self.concepts, self.limit = symbols, concepts, limit
        self.whole = [_conditional_entropy(np.zeros_like(column), column) for column in concepts]
        self.parts: list[frozenset[int]] = [frozenset()] * len(concepts)
        self.evaluate = lru_cache(maxsize=1 << 16)(self._evaluate)

    def run(self) -> _Search:
        n_symbols, n_concepts = len(self.symbols), len(self.concepts)
        if self.limit == n_symbols and n_concepts**n_symbols <= _EXHAUSTIVE:
            self.parts = min(map(self._to_parts, product(range(n_concepts), repeat=n_symbols)), key=self._sum)
            return self
        self._assign_greedily()
        candidates = [self._improve(self.parts)]
        random = np.random.default_rng(0)
        for _ in range(_STARTS // n_symbols):
            owners = random.permutation(np.arange(n_symbols) % n_concepts)
            fewer = [frozenset([*part][: self.limit]) for part in self._to_parts(owners.tolist())]
            candidates.append(self._improve(fewer))
        self.parts = min(candidates, key=self._sum)
        return self

    def total(self) -> float:
        return self._sum(self.parts) / len(self.parts)

    def _evaluate(self, concept: int, part: frozenset[int]) -> float:
        cells = np.zeros(self.symbols.shape[1], np.int64)
        for symbol in sorted(part):
            column = self.symbols[symbol]
            cells = cells * (column.max() + 1) + column
            if cells.max() > 1 << 20:
                cells = _number(cells)
        return _conditional_entropy(cells, self.concepts[concept]) / self.whole[concept]

    def _sum(self, parts: Sequence[frozenset[int]]) -> float:
        return sum(self.evaluate(concept, part) for concept, part in enumerate(parts))

    def _to_parts(self, assignment: Sequence[int]) -> list[frozenset[int]]:
        own = range(len(self.concepts))
        return [frozenset(at for at, concept in enumerate(assignment) if concept == each) for each in own]

    def _assign_greedily(self) -> None:
        free = {*range(len(self.symbols))}
        gains: dict[tuple[int, int], float] = {}
        changed = {*range(len(self.concepts))}
        while free:
            for concept in changed:
                part = self.parts[concept]
                now = self.evaluate(concept, part)
                open_symbols = free if len(part) < self.limit else ()
                gains |= {(concept, each): now - self.evaluate(concept, part | {each}) for each in open_symbols}
            if not gains:
                return
            concept, symbol = max(sorted(gains), key=lambda key: gains[key])
            self.parts[concept] |= {symbol}
            free.remove(symbol)
            changed = {concept}
            full = len(self.parts[concept]) >= self.limit
            gains = {key: gain for key, gain in gains.items() if key[1] != symbol and not (full and key[0] == concept)}

    def _improve(self, parts: Sequence[frozenset[int]]) -> list[frozenset[int]]:
        """Move a symbol, or exchange two or all of two concepts, the best change first, as long as that helps."""
        parts = [*parts]
        while (change := self._find_change(parts)) is not None:
            source, left, target, right = change
            parts[source], parts[target] = left, right
        return parts

    def _find_change(self, parts: Sequence[frozenset[int]]) -> tuple[int, frozenset[int], int, frozenset[int]] | None:
        owner = {symbol: concept for concept, part in enumerate(parts) for symbol in part}
        best, chosen = 1e-12, None
        for symbol, source in owner.items():
            without = parts[source] - {symbol}
            for target, part in enumerate(parts):
                if target == source:
                    continue
                before = self.evaluate(source, parts[source]) + self.evaluate(target, part)
                options = [(without, part | {symbol})] if len(part) < self.limit else []
                options.append((part, parts[source]))
                options += [(without | {other}, part - {other} | {symbol}) for other in part if other > symbol]
                for left, right in options:
                    gain = before - self.evaluate(source, left) - self.evaluate(target, right)
                    if gain > best:
                        best, chosen = gain, (source, left, target, right)
        return chosen


def _number(column: NDArray[Any]) -> Ints:
    """The distinct values as 0, 1, ..."""
    return np.asarray(np.unique(column, return_inverse=True)[1], np.int64).reshape(-1)


def _conditional_entropy(cells: Ints, values: Ints) -> float:
    """H(value | cell) in nats."""
    n_values = int(values.max()) + 1
    if (int(cells.max()) + 1) * n_values > 4 * len(cells) + 4096:  # a sparse table
        joint = np.unique(cells * n_values + values, return_counts=True)[1]
        single = np.unique(cells, return_counts=True)[1]
    else:
        joint, single = np.bincount(cells * n_values + values), np.bincount(cells)
    return _sum_entropy(joint, len(cells)) - _sum_entropy(single, len(cells))


def _sum_entropy(counts: NDArray[Any], total: int) -> float:
    shares = counts[counts > 0] / total
    return float(-(shares * np.log(shares)).sum())
