"""Single components as probes (Raunak, Kumar, Gupta & Metze 2020): what one number a word knows of labelled texts.

A text is the mean of its known words; each component of that mean alone, and then the whole space, foretells the label
by multinomial logistic regression. The paper found no trend from the first component to the last.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from stillvec.analysis.principal_space import Floats, PrincipalSpace
from stillvec.errors import DatasetError
from stillvec.evaluation.linear_probe import Scaling, logistic, one_hot, predict
from stillvec.vectors import WordVectors

_PENALTY = 1.0
_HELD_OUT = 5  # one text in so many, evenly over each label


@dataclass(frozen=True)
class Probed:
    """Accuracies on texts that were held out."""

    name: str
    texts: int
    labels: int
    majority: float  # of always saying the most frequent label
    whole: float  # all components together
    each: tuple[float, ...]  # (d,) each component alone, that of the largest variance first
    trend: float  # Spearman's ρ of a component's place and its accuracy: below 0, the first know more


def probe(vectors: WordVectors, texts: Sequence[str], labels: Sequence[str], name: str = "") -> Probed:
    """What each component knows of the labels of texts."""
    names = sorted(set(labels))
    if len(names) < 2 or len(texts) != len(labels) or len(texts) < 2 * _HELD_OUT:
        raise DatasetError(
            f"A probe wants a label a text, two labels and {2 * _HELD_OUT} texts at least; {len(texts)} texts, "
            f"{len(labels)} labels and {len(names)} different ones came{' from ' * bool(name)}{name}."
        )
    space = PrincipalSpace(vectors)
    rows = (vectors.encode(texts) - space.mean) @ space.axes  # (n, d)
    gold = np.array([names.index(label) for label in labels])
    held = _held_out(gold)
    each = tuple(_accuracy(rows[:, [component]], gold, held) for component in range(vectors.dim))
    most = np.bincount(gold[~held], minlength=len(names)).argmax()
    return Probed(
        name=name,
        texts=len(texts),
        labels=len(names),
        majority=float((gold[held] == most).mean()),
        whole=_accuracy(rows, gold, held),
        each=each,
        trend=float(spearmanr(np.arange(len(each)), each)[0]) if np.ptp(each) else 0.0,
    )


def read_labelled(path: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Texts and labels of a file: a label, a space or tab and a text a line; what is not UTF-8 is Latin-1."""
    place, texts, labels = Path(path), [], []
    if not place.is_file():
        raise DatasetError(f"There is no file {place}; labelled texts were to be read from it.")
    for number, raw in enumerate(place.read_bytes().splitlines(), 1):
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            line = raw.decode("latin-1")
        if not line.strip():
            continue
        label, _, text = line.strip().replace("\t", " ", 1).partition(" ")
        if not text.strip():
            raise DatasetError(f"{place}:{number}: a label, a space and a text are wanted, and {line[:40]!r} came.")
        labels.append(label)
        texts.append(text)
    return texts, labels


def _held_out(gold: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Every fifth text of each label: the same ones each time, whatever the order of the labels."""
    held = np.zeros(len(gold), bool)
    for label in np.unique(gold):
        held[np.flatnonzero(gold == label)[_HELD_OUT - 1 :: _HELD_OUT]] = True
    return held


def _accuracy(rows: Floats, gold: NDArray[np.int64], held: NDArray[np.bool_]) -> float:
    scaling = Scaling.of(rows[~held])
    weights = logistic(scaling(rows[~held]), one_hot(gold[~held], int(gold.max()) + 1), _PENALTY)
    return float((predict(scaling(rows[held]), weights) == gold[held]).mean())
