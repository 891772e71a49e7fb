"""What the principal components of a space know (Raunak, Kumar, Gupta & Metze 2020).

Is the variance of a component a sign of its use? Three views: the first `k` components for growing `k`; thirds of the
components, each as a space of its own; and what is left when the first few are taken out (Mu & Viswanath 2018).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from stillvec.analysis.principal_space import PrincipalSpace
from stillvec.errors import UsageError
from stillvec.evaluation import Score, evaluate
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Study:
    """Scores of parts of a space; a curve is by its number of components, a space by its name."""

    cumulative: dict[int, tuple[Score, ...]]  # k → of the first k components
    thirds: dict[str, tuple[Score, ...]]  # as they came, top, middle, bottom
    shares: dict[str, float]  # of the variance that each third holds
    without: dict[int, tuple[Score, ...]]  # D → the first D components taken out


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
        raise UsageError(
            f"Thirds of {vectors.dim} components at {points} points make no study; three and one are the least."
        )
    space = PrincipalSpace(vectors)
    cuts = np.unique(np.linspace(0, vectors.dim, points + 1).round().astype(int))[1:].tolist()
    bounds = [round(vectors.dim * third / 3) for third in range(4)]
    pieces = {name: (bounds[at], bounds[at + 1]) for at, name in enumerate(("top", "middle", "bottom"))}
    variances = space.variances / max(space.variances.sum(), np.finfo(float).tiny)

    def scored(part: Callable[[], WordVectors], resamples: int = 0) -> tuple[Score, ...]:
        return evaluate(part(), data, tasks, resamples=resamples, seed=seed).scores  # one part in memory at a time

    thirds = {name: scored(partial(space.project, *piece), resamples) for name, piece in pieces.items()}
    return Study(
        cumulative={k: scored(partial(space.project, 0, k)) for k in cuts},
        thirds={"whole": scored(lambda: vectors, resamples), **thirds},
        shares={name: float(variances[first:last].sum()) for name, (first, last) in pieces.items()},
        without={count: scored(partial(space.without_top, count)) for count in without if count < vectors.dim},
    )


def mean_value(scores: Sequence[Score]) -> float:
    """The mean over the datasets that have a value; NaN where none has."""
    values = [score.value for score in scores if np.isfinite(score.value)]
    return float(np.mean(values)) if values else float("nan")


def saturation(curve: Mapping[int, float], tolerance: float = 0.01) -> int:
    """The fewest components from which on the curve stays within `tolerance` of its end."""
    cuts = sorted(curve)
    good = cuts[-1]
    for cut in reversed(cuts):
        if not curve[cut] >= curve[cuts[-1]] - tolerance:
            break
        good = cut
    return good
