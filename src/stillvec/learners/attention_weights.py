"""The attention of a trained model within one sentence, by the code that trained it."""

from collections.abc import Mapping

import numpy as np
import torch

from stillvec.learners.accumulators import to_numpy
from stillvec.learners.windows import WindowConfig, attend, make_windows, project_centres
from stillvec.statistics import Array


def compute_attention(config: WindowConfig, model: Mapping[str, Array], words: Array, states: Array) -> Array:
    """The weight (n, n) that each word of a sentence, as centre, gives to the words around it; NaN for all others.

    `words` (n,) are rows of the vocabulary, -1 for an unknown word; `states` (n, D) are the teacher's.
    """
    rows = torch.from_numpy(words.astype(np.int64))
    sentence = torch.zeros_like(rows)
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in model.items()}
    projections = [tensors[name] for name in sorted(tensors) if name.startswith("projection-")]
    centred = torch.from_numpy(states).float() - tensors["mean"]
    centres = project_centres(config, centred, sentence, projections)
    window = make_windows(sentence, config.window, include_center=config.include_center)
    mask = window.mask & (rows[window.position] >= 0)
    near = tensors["table"][rows[window.position].clamp_min(0), : projections[0].shape[1]]  # (n, positions, dim)
    weights = to_numpy(attend(centres, near, mask, config.attention))
    matrix = np.full((len(words), len(words)), np.nan, np.float32)
    centre, place = np.nonzero(to_numpy(mask))
    matrix[centre, to_numpy(window.position)[centre, place]] = weights[centre, place]
    return matrix
