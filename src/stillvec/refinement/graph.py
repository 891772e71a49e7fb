"""The graph of a lexicon over the rows of a vocabulary, and the sweeps that move rows towards their neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from stillvec.errors import StillvecWarning
from stillvec.lexicons import Edge, as_pair, read_evaluation_pairs, read_lexicon
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

Part = Literal["noun", "verb", "adj", "adv"]
Csr = Any  # scipy.sparse.csr_matrix (V, V): who is moved, by whom, how strongly
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class LexiconGraph:
    """Which edges of which lexicons count."""

    sources: tuple[str, ...]
    relations: tuple[str, ...]  # those of lexicons that name them; what has no name counts always
    parts: tuple[str, ...] = ()  # of speech, where the lexicon tells them; none: all
    directed: bool = False  # a word is moved by the neighbours in its own lines only
    without: tuple[str, ...] = ()  # files or folders of evaluated pairs that the lexicon must not tell

    def over(self, vocabulary: Vocabulary) -> Csr:
        """The weights (V, V); of two edges between the same words the stronger counts."""
        left, right, weights = _found(vocabulary, self._edges())
        if not self.directed:
            left, right = np.concatenate([left, right]), np.concatenate([right, left])
            weights = np.concatenate([weights, weights])
        if not len(left):
            warnings.warn(
                f"No edge of {', '.join(self.sources)} joins two of the words.", StillvecWarning, stacklevel=4
            )
        return _strongest(left, right, weights, len(vocabulary))

    def _edges(self) -> Iterator[Edge]:
        relations, parts = {"", *self.relations}, {"", *self.parts}
        hidden = {as_pair(*pair) for place in self.without for pair in read_evaluation_pairs(place)}
        for source in self.sources:
            for edge in read_lexicon(source):
                wanted = edge.relation in relations and (not self.parts or edge.part in parts)
                if wanted and not (hidden and as_pair(edge.left, edge.right) in hidden):
                    yield edge


def _found(vocabulary: Vocabulary, edges: Iterable[Edge]) -> tuple[Rows, Rows, NDArray[np.float64]]:
    """The rows and weights of the edges between two different known words; words are found as they are written."""
    row = cache(vocabulary.row)
    known = [
        (left, right, edge.weight)
        for edge in edges
        if (left := row(edge.left)) is not None and (right := row(edge.right)) is not None and left != right
    ]
    columns = [*zip(*known, strict=True)] or [(), (), ()]
    return np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.float64)


def _strongest(left: Rows, right: Rows, weights: NDArray[np.float64], size: int) -> Csr:
    keys = left * size + right
    order = np.lexsort((-weights, keys))
    first = order[np.unique(keys[order], return_index=True)[1]]
    first = first[weights[first] > 0]
    return sparse.csr_matrix((weights[first], (left[first], right[first])), shape=(size, size))


def moved_rows(graph: Csr) -> Rows:
    """The rows that have an edge."""
    return np.flatnonzero(np.diff(graph.indptr))


def shares(graph: Csr) -> Csr:
    """The weights of each row divided by their sum."""
    total = np.asarray(graph.sum(1)).ravel()
    scale = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    return sparse.diags(scale) @ graph


def without_edges(graph: Csr, other: Csr) -> Csr:
    """What is left of a graph when the edges of another are taken out, in both directions."""
    kept = graph - graph.multiply((other + other.T) != 0)
    kept.eliminate_zeros()
    return kept.tocsr()


def sweep(
    vectors: WordVectors,
    home: NDArray[np.float64],
    pull: Csr,
    moved: Rows,
    sweeps: int,
    push: Callable[[NDArray[Any], NDArray[Any]], None] | None = None,
) -> WordVectors:
    """`q_i <- home_i q'_i + Σ_j pull_ij q_j`, all rows at once, so many times; rows not moved keep their bytes.

    One sparse product a sweep; beside the result there are two tables of the moved rows and no more. `push` may change
    where they go (M, D), seen from where they are (V, D).
    """
    kind = np.result_type(vectors.matrix.dtype, np.float32)
    table = np.array(vectors.matrix, kind)  # (V, D)
    some = pull[moved].astype(kind)  # (M, V)
    start = table[moved] * home[moved, None].astype(kind)  # (M, D)
    for _ in range(sweeps):
        drawn = some @ table
        drawn += start
        if push is not None:
            push(drawn, table)
        table[moved] = drawn
    return vectors.with_matrix(table.astype(vectors.matrix.dtype, copy=False))
