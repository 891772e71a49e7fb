"""The attention of a trained model inside one sentence, by the code that trained it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from stillvec.learners.accumulators import to_numpy
from stillvec.learners.windows import WindowConfig, attention_weights, centres_of, windows
from stillvec.statistics.mergeable import Array


def attention_within(form: WindowConfig, model: Mapping[str, Array], words: Array, states: Array) -> Array:
    """The weight (n, n) that each word of a sentence, as centre, gives to the words around it; NaN to all others.

    `words` (n,) are rows of the vocabulary, -1 for an unknown word; `states` (n, D) are the teacher's.
    """
    rows = torch.from_numpy(words.astype(np.int64))
    sentence = torch.zeros_like(rows)
    learnt = {name: torch.from_numpy(np.array(array)) for name, array in model.items()}
    projections = [learnt[name] for name in sorted(learnt) if name.startswith("projection-")]
    centres = centres_of(form, torch.from_numpy(states).float() - learnt["mean"], sentence, projections)
    near = windows(sentence, form.window, own=form.own)
    there = near.there & (rows[near.place] >= 0)
    around = learnt["table"][rows[near.place].clamp_min(0), : projections[0].shape[1]]  # (n, places, dim)
    weights = to_numpy(attention_weights(centres, around, there, form.attention))
    found = np.full((len(words), len(words)), np.nan, np.float32)
    centre, place = np.nonzero(to_numpy(there))
    found[centre, to_numpy(near.place)[centre, place]] = weights[centre, place]
    return found
