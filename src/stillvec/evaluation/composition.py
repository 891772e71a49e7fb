"""Composition: how far the vectors of sentences are sums of one vector per word (Bhathena et al. 2020; Andreas 2019).

`tre` is the tree reconstruction error of an additive composition on sentences that were not fitted:

    TRE(x) = 1 - cos(t_x, m + mean over words w of x of v_w)

t_x is the mean of a sentence's words, m the mean of the training sentences, and v the ridge solution of the method
`additive` with uniform weights, for words met `min_count` times or more. The penalty is selected on development
sentences. In-sample the error says nothing: there are more words than sentences. Lower is more compositional, which is
not better, so sets are not ranked.

    tre            as in the paper
    tre-centred    1 - cos(t_x - m, mean of v_w): without the direction that all sentences share
    -random        the same for means of random vectors, which are additive: what rare words and few sentences cost

Files: `trees/*.txt`, a bracketed tree per line. If all labels are numbers (SST), the error is correlated with how far
they change from node to node (Spearman's ρ; the paper's are negative):

    impurity       |label of the root - mean label of all nodes|
    wns            weighted node switching: mean over nodes with children of height x |label - mean of its children's|
    -given-length  the partial correlation, given the number of words

An item is a sentence, covered if one of its words was fitted. Interval: percentile bootstrap over sentences; the fit is
not repeated.
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import (
    Estimate,
    Floats,
    Mask,
    Resampling,
    Rows,
    mean_estimate,
    partial_spearman,
    spearman,
)
from stillvec.evaluation.probing import randomize
from stillvec.evaluation.supervised import LearntItems, estimates
from stillvec.evaluation.tasks import Answers, Items, TokenTask
from stillvec.heads.sequence_batches import SPECIAL, Representation, Sequences
from stillvec.heads.splits import Round, pool_parts
from stillvec.heads.trees import Tree, read_trees
from stillvec.numerics import cosines
from stillvec.registry import check_least
from stillvec.training.bag_regression import Bags, mean_text, solve_bags

PENALTIES = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
ERRORS = ("tre", "tre-random", "tre-centred", "tre-centred-random")
_QUICK = 2000  # training sentences
_ITERATIONS = 30


@dataclass(frozen=True)
class Composition(TokenTask):
    min_count: int = 3

    files: ClassVar[tuple[str, ...]] = ("trees", ".txt")
    ordered: ClassVar[bool] = False
    controls: ClassVar[tuple[str, ...]] = ("-random",)
    summary: ClassVar[str] = "error of sums of words, and its correlations"

    def __post_init__(self) -> None:
        check_least(self, min_count=1)

    def read(self, path: Path) -> LearntItems:
        """The sentences; the labels of each are its impurity and its weighted node switching, or nothing."""
        trees, n_tested, rounds = pool_parts(path, read_trees, _root_label, _QUICK if self.quick else None)
        changes = [measure_changes(tree) for tree in trees]
        labels = tuple(changes) if None not in changes else ()
        return LearntItems.from_sentences(tuple(tree.words for tree in trees), n_tested, labels, rounds)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, LearntItems)
        sequences = yield from lookup.read_tokens_steps(items.all_texts)
        n = len(items)
        targets = {"": sequences.means(), "-random": randomize(sequences).means()}
        values = {name: np.zeros(n) for name in ERRORS}
        covered = np.zeros(n, bool)
        for number, split in enumerate(items.rounds):
            for at, (ending, vectors) in enumerate(targets.items()):
                errors = measure_errors(sequences, vectors, split, self.min_count)
                values[f"tre{ending}"][split.test] = errors.plain
                values[f"tre-centred{ending}"][split.test] = errors.centred
                covered[split.test] = errors.covered
                yield (number + (at + 1) / len(targets)) / len(items.rounds)
        return Answers(covered, values)

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        assert isinstance(items, LearntItems)
        scores = {name: mean_estimate(answers.values[name][chosen], resampling) for name in ERRORS}
        if items.labels:
            changes, length = np.array(items.labels[: len(items)])[chosen], items.gold[chosen]
            for (at, name), ending in product(enumerate(Changes._fields), ("", "-random")):
                error, change = answers.values[f"tre{ending}"][chosen], changes[:, at]
                scores[f"{name}{ending}"] = resampling.correlation(spearman, error, change)
                given = partial(partial_spearman, x=error, y=change, given=length)
                scores |= estimates({f"{name}-given-length{ending}": given}, len(chosen), resampling)
        return scores


class Errors(NamedTuple):
    plain: Floats  # (n,)
    centred: Floats  # (n,)
    covered: Mask  # (n,)

    @property
    def mean(self) -> float:
        return float(self.centred[self.covered].mean()) if self.covered.any() else np.inf


def measure_errors(sequences: Sequences, vectors: NDArray[np.float32], split: Round, min_count: int) -> Errors:
    """The errors of the test sentences; the penalty that is best on development sentences is fitted to these too."""
    fit = _Fit(sequences, vectors, split.train, min_count)
    best = min(PENALTIES, key=lambda ridge: fit.errors(split.dev, ridge).mean)
    return _Fit(sequences, vectors, split.both, min_count).errors(split.test, best)


class _Fit:
    """Vectors of the words that occur `min_count` times in the fitted sentences."""

    def __init__(self, sequences: Sequences, vectors: NDArray[np.float32], fitted: Rows, min_count: int) -> None:
        from scipy.sparse import csr_array

        known, types, text = sequences.types >= SPECIAL, sequences.types, sequences.text
        n_met = np.bincount(types[known & np.isin(text, fitted)], minlength=int(types.max(initial=0)) + 1)
        column = np.where(n_met >= min_count, np.cumsum(n_met >= min_count) - 1, -1)  # of each type
        places = np.flatnonzero(known & (column[types] >= 0))
        self.n_words = np.bincount(text[places], minlength=len(sequences))
        shares = (1 / np.maximum(self.n_words, 1))[text[places]].astype(np.float32)
        shape = len(sequences), int(column.max(initial=-1)) + 1
        self.shares = csr_array((shares, (text[places], column[types[places]])), shape)
        self.vectors = vectors
        rows = fitted[self.n_words[fitted] > 0]
        part = self.shares[rows]
        self.bags = Bags(part.indices, part.data, np.diff(part.indptr), shape[1])
        self.products = np.asarray(part.T @ vectors[rows], np.float32)

    def errors(self, tested: Rows, ridge: float) -> Errors:
        mean = mean_text(self.bags, self.products)
        words, _ = solve_bags(self.bags, self.products, ridge, _ITERATIONS)
        true, predicted = self.vectors[tested], self.shares[tested] @ words
        plain, centred = 1 - cosines(true, predicted + mean), 1 - cosines(true - mean, predicted)
        return Errors(plain, centred, self.n_words[tested] > 0)


class Changes(NamedTuple):
    """How far the labels of a tree change."""

    impurity: float
    wns: float


def measure_changes(tree: Tree) -> Changes | None:
    """The impurity and the weighted node switching of a tree; None if a label is not a number.

    The height of a node is the number of edges to the farthest tag below it.
    """
    try:
        labels = np.array([float(node.label) for node in tree.nodes])
    except ValueError:
        return None
    if not np.isfinite(labels).all():
        return None
    heights = np.zeros(len(labels), np.int64)
    sums, n_children = np.zeros(len(labels)), np.zeros(len(labels))
    for at in range(len(labels) - 1, 0, -1):  # children before their parents
        parent = tree.nodes[at].parent
        heights[parent] = max(heights[parent], heights[at] + 1)
        sums[parent] += labels[at]
        n_children[parent] += 1
    inner = n_children > 0
    switches = heights[inner] * np.abs(labels[inner] - sums[inner] / n_children[inner])
    return Changes(abs(float(labels[0] - labels.mean())), float(switches.mean()) if inner.any() else 0.0)


def _root_label(tree: Tree) -> str:
    return tree.nodes[0].label
