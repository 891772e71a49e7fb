"""The base of methods that train: their settings, the contexts they train on, the model, the vectors."""

import math
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from stillvec.errors import UsageError
from stillvec.learners.accumulators import AccumulatorSpec, to_numpy
from stillvec.learners.context_blocks import ContextBlock, ContextBlocks
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.learners.stream_training import Streamed
from stillvec.learners.training_loop import TrainableModel, train
from stillvec.learners.whitening import remove_directions
from stillvec.progress import drain
from stillvec.result import Result
from stillvec.statistics import STORED, Statistics
from stillvec.teachers.device import resolve_device
from stillvec.training.checkpoint import name_settings, open_checkpoint
from stillvec.training.schedule import Schedule, TrainingProgress, divergence_error
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

PLAIN = {"shared_negatives": 0, "whiten": False, "bias": False, "start": "random", "directions": 0}  # as in the papers


@dataclass(frozen=True)
class TrainedLearner:
    """A method that trains on contexts that the pass stored or, with `stream`, during the pass itself.

    With `stream` nothing is stored, so whatever is fitted to the contexts before training (whitening, the closed-form
    start) is fitted to the first block of sentences only.
    """

    RENAMED: ClassVar[Mapping[str, str]] = {}
    settings: str = "stillvec"  # or a paper's settings, by their name
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, or last3
    epochs: int = 1  # passes over the stored contexts
    rate: float = 1e-3  # initial learning rate
    decay: str = "linear"  # of the learning rate: linear (to a hundredth) or constant
    directions: int = 3  # principal directions removed at the end, with the mean; 0: nothing is removed
    seed: int = 0  # random seed
    stream: bool = False  # train during the pass, in one epoch, without storing contexts

    def __post_init__(self) -> None:
        if self.stream and self.epochs != 1:
            raise UsageError.conflict(f"stream=true trains one epoch, got epochs={self.epochs}")
        self.schedule()

    def contexts(self) -> StoredContexts:
        """What it trains on."""
        raise NotImplementedError

    def model(self, counts: Tensor, sample: Iterable[ContextBlock], width: int, device: torch.device) -> TrainableModel:
        """The model before training, for words with these counts and contexts of `width` dimensions.

        `sample` can be iterated repeatedly: contexts that its start may be fitted to.
        """
        raise NotImplementedError

    def schedule(self) -> Schedule:
        return Schedule(self.epochs, self.rate, self.decay, self.seed)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"contexts": Streamed(self) if self.stream else self.contexts()}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        return drain(self.steps(statistics))

    def steps(
        self,
        statistics: Mapping[str, Statistics],
        folder: Path | None = None,
        *,
        resume: bool = False,
        device: torch.device | None = None,
    ) -> Generator[TrainingProgress, None, Result]:
        """Train; `folder` is where checkpoints go (None: none), `device` a GPU by default if there is one."""
        stored = statistics["contexts"]
        if self.stream:
            tensors = {name.removeprefix(STORED): torch.from_numpy(array) for name, array in stored.arrays.items()}
            return self._finish(tensors, stored.vocabulary, float(tensors.pop("loss")))
        device = device or resolve_device("auto")
        blocks = ContextBlocks(stored, device)
        model = self.model(blocks.count_words(), blocks, stored["stored:contexts"].shape[1], device)
        checkpoint = open_checkpoint(folder, name_settings(self), resume=resume)
        loss = math.nan
        for progress in train(model, blocks, self.schedule(), checkpoint):
            loss = progress.loss
            yield progress
        result = self._finish(model.result(), stored.vocabulary, loss)
        if checkpoint is not None:
            checkpoint.remove()
        return result

    def _finish(self, tensors: Mapping[str, Tensor], vocabulary: Vocabulary, loss: float) -> Result:
        if not torch.isfinite(tensors["vectors"]).all():  # no loss was computed after the last steps
            raise divergence_error(self.rate)
        matrix = np.ascontiguousarray(to_numpy(tensors["vectors"].detach()), np.float32)
        vectors = WordVectors(vocabulary, remove_directions(matrix, vocabulary, self.directions))
        model = {name: to_numpy(tensor.detach()) for name, tensor in tensors.items() if name != "vectors"}
        notes = {"loss": loss} if math.isfinite(loss) else {}  # without an epoch there is none
        return Result(vectors, notes, model)
