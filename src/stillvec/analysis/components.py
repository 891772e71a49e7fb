"""What the principal components of a space encode (Raunak, Kumar, Gupta & Metze 2020).

Does the variance of a component predict its usefulness? Three views: the first `k` components for growing `k`; each
third of the components; and the space without the first few components (Mu & Viswanath 2018).

`probe` classifies texts from single components: a text is the mean of its known words, and multinomial logistic
regression predicts its label from each component alone and from all. The paper found no trend over their order.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from stillvec.analysis.space_geometry import Floats, PrincipalSpace
from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation import Score, evaluate
from stillvec.heads import dataset_files
from stillvec.heads.linear_probe import Scaling, logistic, one_hot, predict
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Study:
    """Scores of parts of a space."""

    cumulative: dict[int, tuple[Score, ...]]  # k → scores of the first k components
    thirds: dict[str, tuple[Score, ...]]  # whole, top, middle, bottom
    shares: dict[str, float]  # share of the variance per third
    without: dict[int, tuple[Score, ...]]  # D → scores without the first D components


def study(
    vectors: WordVectors,
    data: str | os.PathLike[str] | None = None,
    tasks: Sequence[str] | None = ("similarity",),
    *,
    points: int = 15,
    without: Sequence[int] = (0, 1, 2, 3, 5, 10),
    resamples: int = 1000,
    seed: int = 0,
) -> Study:
    """Score the parts of a space with the tasks and data of `evaluate`; only the thirds have intervals."""
    if vectors.dim < 3 or points < 1:
        raise UsageError.expected("at least 3 components and 1 point", f"{vectors.dim} and {points}")
    space = PrincipalSpace(vectors)
    cuts = np.unique(np.linspace(0, vectors.dim, points + 1).round().astype(int))[1:].tolist()
    bounds = [round(vectors.dim * third / 3) for third in range(4)]
    pieces = {name: (bounds[at], bounds[at + 1]) for at, name in enumerate(("top", "middle", "bottom"))}
    variances = space.variances / max(space.variances.sum(), np.finfo(float).tiny)

    def score(part: Callable[[], WordVectors], resamples: int = 0) -> tuple[Score, ...]:
        return evaluate(part(), data, tasks, resamples=resamples, seed=seed).scores  # one part in memory at a time

    thirds = {name: score(partial(space.project, *piece), resamples) for name, piece in pieces.items()}
    return Study(
        cumulative={k: score(partial(space.project, 0, k)) for k in cuts},
        thirds={"whole": score(lambda: vectors, resamples), **thirds},
        shares={name: float(variances[first:last].sum()) for name, (first, last) in pieces.items()},
        without={count: score(partial(space.without_top, count)) for count in without if count < vectors.dim},
    )


def mean_value(scores: Sequence[Score]) -> float:
    """The mean over the datasets with a value; NaN if there is none."""
    values = [score.value for score in scores if np.isfinite(score.value)]
    return float(np.mean(values)) if values else float("nan")


def saturation(curve: Mapping[int, float], tolerance: float = 0.01) -> int:
    """The smallest number of components from which the curve stays within `tolerance` of its end."""
    cuts = sorted(curve)
    good = cuts[-1]
    for cut in reversed(cuts):
        if not curve[cut] >= curve[cuts[-1]] - tolerance:
            break
        good = cut
    return good


_PENALTY = 1.0
_HELD_OUT = 5  # every fifth text of each label


@dataclass(frozen=True)
class Probed:
    """Accuracies on held-out texts."""

    name: str
    texts: int
    labels: int
    majority: float  # baseline: the most frequent label
    whole: float  # all components together
    each: tuple[float, ...]  # (d,) one accuracy per component, largest variance first
    trend: float  # Spearman's ρ of index and accuracy; below 0: the first components are better


def probe(vectors: WordVectors, texts: Sequence[str], labels: Sequence[str], name: str = "") -> Probed:
    """Accuracy of each component as a predictor of the labels of texts."""
    names = sorted(set(labels))
    if len(names) < 2 or len(texts) != len(labels) or len(texts) < 2 * _HELD_OUT:
        what = f"at least {2 * _HELD_OUT} texts, one label per text and two different labels"
        got = f"{len(texts)} texts, {len(labels)} labels and {len(names)} different ones"
        raise DatasetError.expected(what, got, where=name)
    space = PrincipalSpace(vectors)
    rows = (vectors.encode(texts) - space.mean) @ space.axes  # (n, d)
    gold = np.array([names.index(label) for label in labels])
    test = split_texts(gold)
    accuracies = tuple(measure_accuracy(rows[:, [component]], gold, test) for component in range(vectors.dim))
    majority = np.bincount(gold[~test], minlength=len(names)).argmax()
    baseline, whole = float((gold[test] == majority).mean()), measure_accuracy(rows, gold, test)
    trend = float(spearmanr(np.arange(len(accuracies)), accuracies)[0]) if np.ptp(accuracies) else 0.0
    return Probed(name, len(texts), len(names), baseline, whole, accuracies, trend)


def read_labelled(path: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Texts and labels of a file: per line a label, a space or tab, and a text, which may be empty, as classification
    reads it; invalid UTF-8 is read as Latin-1."""
    pairs = [*dataset_files.read_labelled(Path(path))]
    return [text for _, text in pairs], [label for label, _ in pairs]


def split_texts(gold: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the test texts: every fifth text of each label."""
    test = np.zeros(len(gold), bool)
    for label in np.unique(gold):
        test[np.flatnonzero(gold == label)[_HELD_OUT - 1 :: _HELD_OUT]] = True
    return test


def measure_accuracy(rows: Floats, gold: NDArray[np.int64], test: NDArray[np.bool_]) -> float:
    scaling = Scaling.of(rows[~test])
    weights = logistic(scaling(rows[~test]), one_hot(gold[~test], int(gold.max()) + 1), _PENALTY)
    return float((predict(scaling(rows[test]), weights) == gold[test]).mean())
