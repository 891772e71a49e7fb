"""`teacher:NAME@mix`: one weight per layer, learned from the labels of training items (Peters et al. 2018).

    h = sum over layers l of softmax(s)_l (x_l - m_l) / r_l

with `m_l` the mean and `r_l` the root mean square of layer l. The weights `s` are learned together with logistic
regression on h (`linear_probe.py`), on at most 5,000 training words or texts; the tables of the layers are then summed
once, and any model can be trained on the result. The weights never see development or test items.

A task that learns a mix sets `learns_mix`, reads as always, and then, in each round, calls `mix_words` (a label per
word) or `mix_texts` (a label per text) on its `Sequences`, or `learn_mix` and `mix_rows` on rows of its own, one matrix
per layer. Without layers to mix, `mix_words` and `mix_texts` return what they were given.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Floats, Rows
from stillvec.heads.linear_probe import one_hot
from stillvec.heads.sequence_batches import UNKNOWN, Sequences, mix_rows

__all__ = ["learn_mix", "mix_rows", "mix_texts", "mix_words"]

_PENALTY = 10.0
_MAX_ITEMS = 5_000
_ITERATIONS = 100


def learn_mix(layers: Sequence[NDArray[Any]], labels: Rows) -> Floats:
    """The weight of each layer (L,), divided by its root mean square; layers are (n, d), labels (n,)."""
    from scipy.optimize import minimize

    if len(labels) > _MAX_ITEMS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(labels))[:_MAX_ITEMS])
        layers, labels = [layer[chosen] for layer in layers], labels[chosen]
    centred = [np.asarray(layer, np.float32) - layer.mean(axis=0, dtype=np.float32) for layer in layers]
    sizes = np.array([max(float(np.sqrt(np.mean(np.square(layer)))), 1e-12) for layer in centred])
    stacked = np.stack([layer / np.float32(size) for layer, size in zip(centred, sizes, strict=True)])  # (L, n, d)
    numbers, present = np.unique(labels, return_inverse=True)
    counts = one_hot(present, len(numbers)).astype(np.float32)
    start = np.zeros(len(layers) + (stacked.shape[2] + 1) * len(numbers))
    options = {"maxiter": _ITERATIONS, "gtol": 1e-5}
    result = minimize(_loss, start, (stacked, counts), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(_softmax(result.x[: len(layers)]) / sizes)


def _loss(flat: Floats, stacked: NDArray[np.float32], counts: NDArray[np.float32]) -> tuple[float, Floats]:
    """The loss of logistic regression on the mix, and its gradient, for scores of layers and weights of the probe."""
    n_layers, n, d = stacked.shape
    shares = _softmax(flat[:n_layers])
    w = flat[n_layers:].reshape(d + 1, -1).astype(np.float32)
    mixed = np.tensordot(shares.astype(np.float32), stacked, 1)  # (n, d)
    scores = mixed @ w[:-1] + w[-1]
    logs = scores - scores.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    value = -float((logs * counts).sum()) + _PENALTY / 2 * float(np.square(w[:-1]).sum())
    residuals = np.exp(logs) - counts
    of_shares = np.tensordot(stacked, residuals @ w[:-1].T, 2).astype(np.float64)  # (L,)
    of_scores = shares * (of_shares - shares @ of_shares)
    of_w = np.concatenate([mixed.T @ residuals + np.float32(_PENALTY) * w[:-1], residuals.sum(axis=0, keepdims=True)])
    return value / n, np.concatenate([of_scores, of_w.ravel().astype(np.float64)]) / n


def mix_words(sequences: Sequences, labels: Rows, train: Rows) -> Sequences:
    """Sequences with a table, mixed for the labels of words (N,), learned from the texts `train`."""
    if not sequences.layers:
        return sequences
    words = np.flatnonzero(np.isin(sequences.text, train) & (sequences.ids != UNKNOWN))
    if len(words) > _MAX_ITEMS:
        words = np.sort(np.random.default_rng(0).permutation(words)[:_MAX_ITEMS])
    return sequences.mix(learn_mix([layer[sequences.ids[words]] for layer in sequences.layers], labels[words]))


def mix_texts(sequences: Sequences, labels: Rows, train: Rows) -> Sequences:
    """Sequences with a table, mixed for the labels of texts (n,), learned from the means of the texts `train`."""
    if not sequences.layers:
        return sequences
    means = [sequences.take_layer(number).means()[train] for number in range(len(sequences.layers))]
    return sequences.mix(learn_mix(means, labels[train]))


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())
