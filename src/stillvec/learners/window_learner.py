"""The settings that methods with windows share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stillvec.learners.context_blocks import Sample
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.windows import WindowConfig, WindowTable


@dataclass(frozen=True)
class WindowLearner(TrainedLearner):
    dim: int = 300
    window: int = 2  # words to each side
    pool: str = "mean"  # of the rows around a centre: mean, sum, each by itself, or attention
    attention: float = 0.1  # scale of the products, where pool is attention
    own: bool = True  # whether a word stands in its own window
    batch: int = 256  # sentences
    negatives: int = 5  # a centre
    shared: int = 1024  # drawn for a whole batch, weighed to be `negatives` a centre; 0: drawn for each centre
    power: float = 0.75  # of the counts, for negatives
    subsample: float = 0.0  # t, for words around a centre; 0: none is left out
    shortest: int = 2  # words of a sentence
    longest: int = 1_000_000
    optimizer: str = "adam"  # or sgd
    clip: float = 5.0  # norm of the gradient, for sgd
    projection_rate: float = 0.0  # of the projection, in rates of the table; 0: it stays
    whiten: bool = True
    ridge: float = 1.0  # of the whitening, in mean eigenvalues
    bias: bool = True
    start: str = "closed"  # from the closed form; or random

    def __post_init__(self) -> None:
        super().__post_init__()
        self.form()

    def form(self) -> WindowConfig:
        return WindowConfig.of(self)

    def contexts(self) -> StoredContexts:
        return StoredContexts(self.layer, states=True)

    def model(self, counts: Tensor, sample: Sample, width: int, device: torch.device) -> WindowTable:
        return WindowTable(self.form(), counts, sample, width, device)
