"""What the principal components of a space encode (Raunak, Kumar, Gupta & Metze 2020).

Does the variance of a component predict its usefulness? Three views: the first `k` components for growing `k`; each
third of the components; and the space without the first few components (Mu & Viswanath 2018).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from stillvec.analysis.space_geometry import PrincipalSpace
from stillvec.errors import UsageError
from stillvec.evaluation import Score, evaluate
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
