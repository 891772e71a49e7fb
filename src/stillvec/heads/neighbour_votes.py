"""The label of a text from its nearest neighbours in training: no model, and nothing to select.

    plain       the label with the most votes among the k neighbours of highest cosine
    balanced    votes divided by the number of training texts with that label, which corrects the prior of training
                (Coria et al. 2020); pays where rare labels are more frequent in the test than in training

Equal votes are decided by the sum of the cosines.
"""

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import iterate_blocks, top_k, unit_rows
from stillvec.numerics.array_types import Floats, Rows

_BLOCK = 1024  # texts at once
TIE = 1e-6  # weight of the cosines, which only decides between equal votes


def count_votes(train: NDArray[np.float32], labels: Rows, x: NDArray[np.float32], k: int, n_labels: int) -> Floats:
    """The votes for each label (n, labels) of rows x (n, d), by training rows (m, d) with labels (m,)."""
    known = unit_rows(np.asarray(train, np.float32))
    votes = np.zeros((len(x), n_labels))
    for rows, block in iterate_blocks(x, np.float32, _BLOCK):
        cosines = unit_rows(block) @ known.T
        nearest = top_k(cosines, k)
        worth = 1 + TIE * np.take_along_axis(cosines, nearest, 1)
        np.add.at(votes[rows], (np.arange(len(block))[:, None], labels[nearest]), worth)
    return votes


def balance_votes(votes: Floats, labels: Rows) -> Floats:
    """Votes divided by the number of training texts of each label; a label without any has none."""
    return np.asarray(votes / np.maximum(np.bincount(labels, minlength=votes.shape[1]), 1))
