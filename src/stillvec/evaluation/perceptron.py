"""A perceptron with one hidden layer that learns the labels of words, given how often each word had each label.

    scores = B ReLU(A x + a) + b;   the loss is the mean over all occurrences of -log softmax(scores)[label]

A word has one vector wherever it stands, so a table of counts says all that its occurrences do, and one step over the
table is one epoch over the corpus. Adam; it ends after 10 steps without a smaller loss on development counts (the paper
watches the accuracy, which stands still for longer than that while so large a batch still learns).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

_RATE, _PATIENCE, _LONGEST = 5e-3, 10, 500


def perceptron(
    x: NDArray[np.float32], seen: NDArray[np.float64], judged: NDArray[np.float64], hidden: int, seed: int
) -> NDArray[np.int64]:
    """The label of each row of x (w, d), learnt from counts `seen` (w, k), stopped by counts `judged` (w, k)."""
    random = torch.Generator().manual_seed(seed)
    layers = nn.Linear(x.shape[1], hidden), nn.Linear(hidden, seen.shape[1])
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    with torch.no_grad():
        for layer in layers:
            for tensor in layer.parameters():
                tensor.copy_((2 * torch.rand(tensor.shape, generator=random) - 1) * layer.in_features**-0.5)
    read = seen.sum(axis=1) > 0
    learnt, counts = torch.from_numpy(x[read]), torch.from_numpy((seen[read] / seen.sum()).astype(np.float32))
    optimizer = torch.optim.Adam(network.parameters(), lr=_RATE)
    asked = judged.sum(axis=1) > 0
    dev, weights = torch.from_numpy(x[asked]), torch.from_numpy(judged[asked].astype(np.float32))
    best, since, labels = np.inf, 0, np.zeros(len(x), np.int64)
    for _ in range(_LONGEST):
        loss = -(torch.log_softmax(network(learnt), dim=1) * counts).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        with torch.no_grad():
            lost, since = -float((torch.log_softmax(network(dev), dim=1) * weights).sum()), since + 1
            if lost < best:
                best, since, labels = lost, 0, network(torch.from_numpy(x)).argmax(dim=1).numpy()
        if since == _PATIENCE:
            break
    return labels
