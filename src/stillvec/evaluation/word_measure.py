"""How similar two words are: by the cosine, or by a distance of feature tuples (Bhat et al. 2020)."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Floats
from stillvec.evaluation.tasks import Task
from stillvec.numerics import cosines
from stillvec.refinement.fuzzy_sets import DISTANCES, check_tuples

Measure = Literal["cosine", "cross_entropy", "divergence", "one_sided_divergence"]


@dataclass(frozen=True)
class MeasuredTask(Task):
    """A task that compares pairs of vectors."""

    measure: Measure = "cosine"  # cosine; of feature tuples cross_entropy, divergence or one_sided_divergence
    symmetric: bool = False  # average a measure of feature tuples over both directions

    def compare(self, x: NDArray[Any], y: NDArray[Any]) -> Floats:
        """The similarity of each pair of rows (n,): the cosine, or minus the distance from x to y."""
        if self.measure == "cosine":
            return cosines(x, y)
        for rows in (x, y):
            check_tuples(rows)
        distance = DISTANCES[self.measure]
        return np.asarray(-(distance(x, y) + distance(y, x)) / 2 if self.symmetric else -distance(x, y))
