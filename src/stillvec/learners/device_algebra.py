"""Arithmetic on tables of words (V, D), where it is fast: on a GPU if torch is in use and has one, else by NumPy.

A `Table` is a tensor on the GPU or an array. Results on a CPU are those of `refinement` and `numerics`, bit by bit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from stillvec.learners.accumulators import WordMeans, mean_matrix, remove_directions
from stillvec.numerics import unit_rows
from stillvec.refinement.pca import principal_directions
from stillvec.statistics import Array
from stillvec.vocabulary import Vocabulary

Table = Any
_SQUARINGS = 30  # of second moments: directions whose variances differ by 1e-8 of themselves are told apart


def place(array: Array) -> Table:
    """The array where it is computed with."""
    torch = sys.modules.get("torch")  # without it there is no GPU, and merging results does not import it
    if torch is None or not torch.cuda.is_available():
        return array
    return torch.from_numpy(np.require(array, requirements="W")).cuda()


def place_means(means: WordMeans, layer: int) -> Table:
    """The mean states of a layer."""
    kind, table = means.table(layer)
    placed = place(table)
    if kind != "sum" or isinstance(placed, np.ndarray):
        return place(means[layer])
    return placed / place(means.n_contexts)


def unit(table: Table) -> Table:
    """Rows of length one; zero where a row is zero or not finite."""
    if isinstance(table, np.ndarray):
        return unit_rows(table)
    lengths = (table * table).sum(1, keepdim=True).sqrt()
    directed = (lengths > 0) & lengths.isfinite()
    return (table / lengths.where(directed, lengths.new_ones(()))).where(directed, table.new_zeros(()))


def spread(table: Table, vocabulary: Vocabulary, rows: Array | None = None) -> Table:
    """Centred, without the first principal direction, rows of unit length; of all rows, or of some."""
    if isinstance(table, np.ndarray):
        whole = unit_rows(remove_directions(table, vocabulary, 1))
        return whole if rows is None else whole[rows]
    if min(table.shape[1] - 1, table.shape[0] - 2) > 0:  # as `remove_directions`
        table = table - table.mean(0, dtype=table.new_zeros(()).double().dtype).float()
        top = _first_direction(table)
        table = table if rows is None else table[place(rows)]
        return unit(table - (table @ top)[:, None] * top)
    return unit(table if rows is None else table[place(rows)])


def pair_values(table: Table) -> Table:
    """The upper triangle of a square table, row by row, without the diagonal."""
    if isinstance(table, np.ndarray):
        return table[np.triu(np.ones(table.shape, bool), 1)]
    return table[table.new_ones(table.shape).triu(1).bool()]


def find_largest(values: Table, number: int) -> Table:
    """Indices of the largest values, largest first; of an array, equal ones in order."""
    if not isinstance(values, np.ndarray):
        return values.topk(min(number, len(values))).indices
    if number < len(values):
        least = -np.partition(-values, number - 1)[number - 1]
        candidates = np.flatnonzero(values >= least)
    else:
        candidates = np.arange(len(values))
    return np.asarray(candidates[np.argsort(-values[candidates], kind="stable")[:number]])


def mean(tables: Iterable[Table]) -> Table:
    """The mean of tables that are made one at a time."""
    iterator = iter(tables)
    first = next(iterator)
    if isinstance(first, np.ndarray):
        return mean_matrix(chain([first], iterator))
    total, number = first, 1
    for table in iterator:
        total, number = total + table, number + 1
    return total / number


def join(tables: Iterable[Table]) -> Table:
    """Side by side."""
    every = [*tables]
    if isinstance(every[0], np.ndarray):
        return np.concatenate(every, axis=1)
    return sys.modules["torch"].cat(every, 1)


def reduce_dimensions(table: Table, dim: int) -> Table:
    """The first principal components, not centred: the mean carries meaning."""
    dim = min(dim, table.shape[1])
    if isinstance(table, np.ndarray):
        return np.asarray(table @ principal_directions(table)[1][:, :dim])
    axes = _axes(table).flip(1)[:, :dim]
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()  # as `principal_axes`
    return table @ (axes * signs)


def _first_direction(table: Table) -> Table:
    """The first principal direction of a tensor: all columns of a high power of its second moments have it."""
    power = (table.T @ table).double()
    for _ in range(_SQUARINGS):
        power = power / power.norm().clamp_min(1e-300)
        power = power @ power
    column = power[:, power.diagonal().argmax()]
    return (column / column.norm().clamp_min(1e-300)).float()


def _axes(table: Table) -> Table:
    """Eigenvectors of the second moments of a tensor, in columns, the largest eigenvalue last."""
    moments = (table.T @ table).double()
    return sys.modules["torch"].linalg.eigh(moments)[1].float()
