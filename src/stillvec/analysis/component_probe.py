"""Text classification from single principal components (Raunak, Kumar, Gupta & Metze 2020).

A text is represented by the mean of its known words. Multinomial logistic regression predicts its label from each
component alone and from all components. The paper found no trend over the order of components.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from stillvec.analysis.space_geometry import Floats, PrincipalSpace
from stillvec.errors import DatasetError
from stillvec.evaluation.linear_probe import Scaling, logistic, one_hot, predict
from stillvec.vectors import WordVectors

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
        raise DatasetError.expected(
            f"at least {2 * _HELD_OUT} texts, one label per text and two different labels",
            f"{len(texts)} texts, {len(labels)} labels and {len(names)} different ones",
            where=name,
        )
    space = PrincipalSpace(vectors)
    rows = (vectors.encode(texts) - space.mean) @ space.axes  # (n, d)
    gold = np.array([names.index(label) for label in labels])
    test = _split(gold)
    accuracies = tuple(_accuracy(rows[:, [component]], gold, test) for component in range(vectors.dim))
    majority = np.bincount(gold[~test], minlength=len(names)).argmax()
    return Probed(
        name=name,
        texts=len(texts),
        labels=len(names),
        majority=float((gold[test] == majority).mean()),
        whole=_accuracy(rows, gold, test),
        each=accuracies,
        trend=float(spearmanr(np.arange(len(accuracies)), accuracies)[0]) if np.ptp(accuracies) else 0.0,
    )


def read_labelled(path: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Texts and labels of a file: per line a label, a space or tab, and a text; invalid UTF-8 is read as Latin-1."""
    file, texts, labels = Path(path), [], []
    if not file.is_file():
        raise DatasetError.not_found(file, "labelled texts")
    for number, raw in enumerate(file.read_bytes().splitlines(), 1):
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            line = raw.decode("latin-1")
        if not line.strip():
            continue
        label, _, text = line.strip().replace("\t", " ", 1).partition(" ")
        if not text.strip():
            raise DatasetError.expected("a label, a space and a text", repr(line[:40]), path=file, line=number)
        labels.append(label)
        texts.append(text)
    return texts, labels


def _split(gold: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the test texts: every fifth text of each label."""
    test = np.zeros(len(gold), bool)
    for label in np.unique(gold):
        test[np.flatnonzero(gold == label)[_HELD_OUT - 1 :: _HELD_OUT]] = True
    return test


def _accuracy(rows: Floats, gold: NDArray[np.int64], test: NDArray[np.bool_]) -> float:
    scaling = Scaling.of(rows[~test])
    weights = logistic(scaling(rows[~test]), one_hot(gold[~test], int(gold.max()) + 1), _PENALTY)
    return float((predict(scaling(rows[test]), weights) == gold[test]).mean())
