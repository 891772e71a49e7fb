"""Pooling: one vector of the words of a text or of a span (Toshniwal et al. 2020).

    mean, sum, min, max     of the words, column by column; avg is another name of mean
    attention               the mean weighted by softmax(v·e_k); v is learned and begins as zeros, as the mean
    first, last             the first and the last word
    endpoint                [e_i; e_j], the first word and the last one
    diffsum                 [e_j + e_i; e_j - e_i]
    coherent                [e¹_i; e²_j; e³_i·e⁴_j], e divided into parts of a, a, b and b columns, a = 15 b

`POOLINGS` are for whole texts, over the known words; `EDGE_POOLINGS` of them depend on two words only, of a text or of
a span, in NumPy or in torch. The poolings of spans are trained with the network of `span_networks.py`.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.heads.sequence_batches import PADDING, UNKNOWN, Sequences

SPAN_POOLINGS = ("avg", "max", "attention", "endpoint", "diffsum", "coherent")  # the order of the paper
_COHERENT = 16  # (a + b) / b

EdgePooling = Callable[[Any, Any, Any], Any]  # numpy or torch, first words (..., d), last words (..., d) → (..., p)


def split_poolings(text: str, allowed: Collection[str]) -> list[str]:
    """`avg+max` → the names."""
    names = [*dict.fromkeys(text.split("+"))]
    for name in names:
        if name not in allowed:
            raise UsageError.unknown("pooling", name, allowed)
    return names


def divide_coherent(dim: int) -> tuple[int, int]:
    """a and b, with 2 a + 2 b = dim; 120 and 8 for 256. An odd column is not used."""
    b = max(1, dim // (2 * _COHERENT))
    return dim // 2 - b, b


def _endpoint(library: Any, first: Any, last: Any) -> Any:
    return library.concatenate([first, last], axis=-1)


def _diffsum(library: Any, first: Any, last: Any) -> Any:
    return library.concatenate([last + first, last - first], axis=-1)


def _coherent(library: Any, first: Any, last: Any) -> Any:
    a, b = divide_coherent(first.shape[-1])
    similarity = (first[..., 2 * a : 2 * a + b] * last[..., 2 * a + b : 2 * (a + b)]).sum(-1)[..., None]
    return library.concatenate([first[..., :a], last[..., a : 2 * a], similarity], axis=-1)


EDGE_POOLINGS: dict[str, EdgePooling] = {
    "first": lambda library, first, last: first,
    "last": lambda library, first, last: last,
    "endpoint": _endpoint,
    "diffsum": _diffsum,
    "coherent": _coherent,
}


def pool_size(pooling: str, dim: int) -> int:
    """Columns of the vector of a span whose words have `dim`."""
    pool = EDGE_POOLINGS.get(pooling)
    return dim if pool is None else int(pool(np, np.zeros(dim), np.zeros(dim)).shape[0])


def _edge(sequences: Sequences, last: bool) -> NDArray[np.float32]:
    """Vector of the first or last known word of each text (n, dim)."""
    at = np.flatnonzero(sequences.ids != UNKNOWN)
    order = at if last else at[::-1]  # the last assignment to a text wins
    rows = np.full(len(sequences), PADDING)
    rows[sequences.text[order]] = sequences.ids[order]
    return np.asarray(sequences.table[rows], np.float32)


def _pool_edges(sequences: Sequences, pool: EdgePooling) -> NDArray[np.float32]:
    return np.asarray(pool(np, _edge(sequences, last=False), _edge(sequences, last=True)))


def _extreme(sequences: Sequences, best: np.ufunc) -> NDArray[np.float32]:
    """Column-wise maximum or minimum over the known words of each text (n, dim)."""
    result = np.zeros((len(sequences), sequences.table.shape[1]), np.float32)
    is_known = sequences.ids != UNKNOWN
    ids, known = sequences.ids[is_known], sequences.known
    ends = np.cumsum(known)
    for at in np.flatnonzero(known):
        result[at] = best.reduce(sequences.table[ids[ends[at] - known[at] : ends[at]]], axis=0)
    return result


POOLINGS: dict[str, Callable[[Sequences], NDArray[np.float32]]] = {
    "mean": Sequences.means,
    "avg": Sequences.means,
    "sum": Sequences.sums,
    "min": partial(_extreme, best=np.minimum),
    "max": partial(_extreme, best=np.maximum),
    **{name: partial(_pool_edges, pool=pool) for name, pool in EDGE_POOLINGS.items()},
}
