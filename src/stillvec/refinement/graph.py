"""The graph of a lexicon over the rows of a vocabulary, and the iteration that moves rows towards their neighbours."""

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
Csr = Any  # scipy.sparse.csr_matrix (V, V): weight of column j in the update of row i
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class LexiconGraph:
    """The edges of lexicons, by relation and part of speech."""

    sources: tuple[str, ...]
    relations: tuple[str, ...]  # edges without a relation are always used
    parts: tuple[str, ...] = ()  # parts of speech, where the lexicon has them; empty: all
    directed: bool = False  # a word is moved only by neighbours listed in its own lines
    without: tuple[str, ...] = ()  # files or folders of evaluation pairs whose edges are excluded

    def over(self, vocabulary: Vocabulary) -> Csr:
        """The weights (V, V); the largest of several edges between the same words."""
        left, right, weights = _find_rows(vocabulary, self._edges())
        if not self.directed:
            left, right = np.concatenate([left, right]), np.concatenate([right, left])
            weights = np.concatenate([weights, weights])
        if not len(left):
            message = f"No edge of {', '.join(self.sources)} connects two known words."
            warnings.warn(message, StillvecWarning, stacklevel=4)
        return _build_graph(left, right, weights, len(vocabulary))

    def _edges(self) -> Iterator[Edge]:
        relations, parts = {"", *self.relations}, {"", *self.parts}
        excluded = {as_pair(*pair) for place in self.without for pair in read_evaluation_pairs(place)}
        for source in self.sources:
            for edge in read_lexicon(source):
                matches = edge.relation in relations and (not self.parts or edge.part in parts)
                if matches and not (excluded and as_pair(edge.left, edge.right) in excluded):
                    yield edge


def _find_rows(vocabulary: Vocabulary, edges: Iterable[Edge]) -> tuple[Rows, Rows, NDArray[np.float64]]:
    """Rows and weights of the edges between two different known words."""
    row = cache(vocabulary.row)
    known = [
        (left, right, edge.weight)
        for edge in edges
        if (left := row(edge.left)) is not None and (right := row(edge.right)) is not None and left != right
    ]
    columns = [*zip(*known, strict=True)] or [(), (), ()]
    return np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.float64)


def _build_graph(left: Rows, right: Rows, weights: NDArray[np.float64], size: int) -> Csr:
    keys = left * size + right
    order = np.lexsort((-weights, keys))
    first = order[np.unique(keys[order], return_index=True)[1]]
    first = first[weights[first] > 0]
    return sparse.csr_matrix((weights[first], (left[first], right[first])), shape=(size, size))


def shares(graph: Csr) -> Csr:
    """The weights of each row divided by their sum."""
    total = np.asarray(graph.sum(1)).ravel()
    scale = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    return sparse.diags(scale) @ graph


def without_edges(graph: Csr, other: Csr) -> Csr:
    """A graph without the edges of another, in either direction."""
    rest = graph - graph.multiply((other + other.T) != 0)
    rest.eliminate_zeros()
    return rest.tocsr()


def sweep(
    vectors: WordVectors,
    home: NDArray[np.float64],
    pull: Csr,
    moved: Rows,
    sweeps: int,
    push: Callable[[NDArray[Any], NDArray[Any]], None] | None = None,
) -> WordVectors:
    """`q_i <- home_i q'_i + Σ_j pull_ij q_j`, all rows at once, `sweeps` times; other rows stay unchanged.

    One sparse product per sweep; memory: the result and two tables of the moved rows. `push` may update the targets
    of the moved rows (M, D) in place, given the present table (V, D).
    """
    kind = np.result_type(vectors.matrix.dtype, np.float32)
    table = np.array(vectors.matrix, kind)  # (V, D)
    weights = pull[moved].astype(kind)  # (M, V)
    start = table[moved] * home[moved, None].astype(kind)  # (M, D)
    for _ in range(sweeps):
        targets = weights @ table
        targets += start
        if push is not None:
            push(targets, table)
        table[moved] = targets
    return vectors.with_matrix(table.astype(vectors.matrix.dtype, copy=False))
