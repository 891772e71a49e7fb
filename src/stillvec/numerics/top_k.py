"""The k largest values of each row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def top_k(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Columns of the k largest values of each row (n, k), largest first, equal ones by column.

    Which of several equal values at the border are among the k is not specified.
    """
    k = min(k, scores.shape[-1])
    if k < scores.shape[-1]:
        chosen = np.sort(np.argpartition(-scores, k - 1, axis=-1)[..., :k], axis=-1)
    else:
        chosen = np.broadcast_to(np.arange(k), scores.shape)
    order = np.argsort(-np.take_along_axis(scores, chosen, -1), axis=-1, kind="stable")
    return np.asarray(np.take_along_axis(chosen, order, -1))
