"""The base of methods with windows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from stillvec.learners.context_blocks import ContextBlock
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.windows import WindowConfig, WindowSettings, WindowTable


@dataclass(frozen=True)
class WindowLearner(WindowSettings, TrainedLearner):
    RENAMED: ClassVar[Mapping[str, str]] = {
        "own": "include_center",
        "shared": "shared_negatives",
        "shortest": "min_length",
        "longest": "max_length",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.config()

    def config(self) -> WindowConfig:
        return WindowConfig.from_learner(self)

    def contexts(self) -> StoredContexts:
        return StoredContexts(self.layer, states=True)

    def model(self, counts: Tensor, sample: Iterable[ContextBlock], width: int, device: torch.device) -> WindowTable:
        return WindowTable(self.config(), counts, sample, width, device)
