"""Multilayer perceptron with one hidden layer that predicts the labels of words from label counts per word.

    scores = B ReLU(A x + a) + b;   loss = mean over all occurrences of -log softmax(scores)[label]

A static vector is the same for all occurrences of a word, so label counts replace the occurrences and one full-batch
step is one epoch over the corpus. Optimizer: Adam. Early stopping after 10 steps without a lower development loss (the
paper monitors accuracy, which can stay constant for longer than that while full-batch training still improves).
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from stillvec.evaluation.intervals import Floats, Rows

_RATE, _PATIENCE, _LONGEST = 5e-3, 10, 500


def perceptron(x: NDArray[np.float32], seen: Floats, judged: Floats, hidden: int, seed: int) -> Rows:
    """Predict a label per row of x (w, d): training counts `seen` (w, k), early stopping on counts `judged` (w, k)."""
    generator = torch.Generator().manual_seed(seed)
    layers = nn.Linear(x.shape[1], hidden), nn.Linear(hidden, seen.shape[1])
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    with torch.no_grad():
        for layer in layers:
            for tensor in layer.parameters():
                tensor.copy_((2 * torch.rand(tensor.shape, generator=generator) - 1) * layer.in_features**-0.5)
    in_train = seen.sum(axis=1) > 0
    train, counts = torch.from_numpy(x[in_train]), torch.from_numpy((seen[in_train] / seen.sum()).astype(np.float32))
    optimizer = torch.optim.Adam(network.parameters(), lr=_RATE)
    in_dev = judged.sum(axis=1) > 0
    dev, weights = torch.from_numpy(x[in_dev]), torch.from_numpy(judged[in_dev].astype(np.float32))
    best, n_stale, labels = np.inf, 0, np.zeros(len(x), np.int64)
    for _ in range(_LONGEST):
        loss = -(torch.log_softmax(network(train), dim=1) * counts).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        with torch.no_grad():
            dev_loss, n_stale = -float((torch.log_softmax(network(dev), dim=1) * weights).sum()), n_stale + 1
            if dev_loss < best:
                best, n_stale, labels = dev_loss, 0, network(torch.from_numpy(x)).argmax(dim=1).numpy()
        if n_stale == _PATIENCE:
            break
    return labels
