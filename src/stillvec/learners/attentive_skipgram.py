"""Attentive skip-gram (Wang, Cui & Zhang 2020): the teacher's state in the centre attends to the words around it.

    u_i = W o_i      a_j = softmax over the window of u_i . v_j      v = sum of a_j v_j
    l(v . u_i) + sum over negatives of l(-v' . u_i),   l(x) = log(1 + e^-x)

The table of the v is the result. The paper's settings are `settings=wang-2020` (its plain steps of 0.025, clipped);
`pool=sum` is its figure 5 without attention, `window` its figure 4. What the defaults change, and what each change
gave, stands in docs/results.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from stillvec.learners.kept import KeptContexts
from stillvec.learners.training import Sample, TrainedLearner
from stillvec.learners.windows import Form, WindowTable


@dataclass(frozen=True)
class AttentiveSkipgram(TrainedLearner):
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "wang-2020": {
            "window": 5,
            "rate": 0.025,
            "batch": 16,
            "attention": 1.0,
            "own": False,
            "shared": 0,
            "shortest": 10,
            "longest": 40,
            "optimizer": "sgd",
            "projection_rate": 1.0,
            "whiten": False,
            "bias": False,
            "start": "random",
            "directions": 0,
        }
    }
    dim: int = 300
    window: int = 2  # words to each side
    pool: str = "attention"  # or mean, sum, each
    attention: float = 0.1  # scale of the products
    own: bool = True  # whether a word stands in its own window
    batch: int = 256  # sentences
    negatives: int = 5  # a centre
    shared: int = 1024  # drawn for a whole batch, weighed to be `negatives` a centre; 0: drawn for each centre
    power: float = 0.75
    subsample: float = 0.0  # t, for words around a centre; 0: none is left out
    shortest: int = 2  # words of a sentence
    longest: int = 1_000_000
    optimizer: str = "adam"  # or sgd
    clip: float = 5.0  # norm of the gradient, for sgd
    projection_rate: float = 0.0
    whiten: bool = True
    ridge: float = 1.0
    bias: bool = True
    start: str = "closed"  # or random

    def __post_init__(self) -> None:
        super().__post_init__()
        self.form()

    def form(self) -> Form:
        return Form.of(self, around=0.0, squash="none", reward=0.0)

    def contexts(self) -> KeptContexts:
        return KeptContexts(self.layer, states=True)

    def model(self, counts: Tensor, sample: Sample, width: int, device: torch.device) -> WindowTable:
        return WindowTable(self.form(), counts, sample, width, device)
