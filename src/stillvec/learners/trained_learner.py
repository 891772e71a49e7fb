"""What methods that train share: settings, contexts, a model, and vectors in the end."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from stillvec.errors import UsageError
from stillvec.learners.accumulators import AccumulatorSpec, to_numpy
from stillvec.learners.context_blocks import Sample, iterate_blocks, kept_counts
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.learners.stream_training import Streamed
from stillvec.learners.training_checkpoint import checkpoint_for
from stillvec.learners.training_loop import Schedule, TrainableModel, TrainingStep, divergence_error, train
from stillvec.learners.whitening import tidied
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import STORED
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class TrainedLearner:
    """A method that trains: on contexts that the pass kept, or, in one epoch, in the pass itself (`stream`).

    In the stream nothing is kept, so nothing can be looked at beforehand but the first sentences: what is fitted to the
    contexts (whitening, a start from the closed form) is fitted to those.
    """

    settings: str = "stillvec"  # or the paper's, by its name in PRESETS
    layer: str = "last"
    epochs: int = 1
    rate: float = 1e-3
    decay: str = "linear"
    directions: int = 3  # first principal directions taken out at the end, with the mean; 0: nothing is
    seed: int = 0
    stream: bool = False

    def __post_init__(self) -> None:
        if self.stream and self.epochs != 1:
            raise UsageError(f"In the stream there is one epoch, and {self.epochs} were asked for; leave stream out.")
        self.course()

    def contexts(self) -> StoredContexts:
        """What it trains on."""
        raise NotImplementedError

    def model(self, counts: Tensor, sample: Sample, width: int, device: torch.device) -> TrainableModel:
        """The table to train: `counts` of the words, contexts to be looked at beforehand, their dimensions."""
        raise NotImplementedError

    def course(self) -> Schedule:
        return Schedule(self.epochs, self.rate, self.decay, self.seed)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"contexts": Streamed(self) if self.stream else self.contexts()}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        steps = self.steps(statistics)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                made: Result = end.value
                return made

    def steps(
        self,
        statistics: Mapping[str, Statistics],
        place: Path | None = None,
        *,
        resume: bool = False,
        device: torch.device | None = None,
    ) -> Generator[TrainingStep, None, Result]:
        """Train, with a sign of life now and then; `place` is a folder for checkpoints, `device` by default a GPU."""
        kept = statistics["contexts"]
        if self.stream:
            tensors = {name.removeprefix(STORED): torch.from_numpy(array) for name, array in kept.arrays.items()}
            return self._finished(tensors, kept.vocabulary, float(tensors.pop("loss")))
        device = device or training_device()
        width = kept["stored:contexts"].shape[1]
        model = self.model(kept_counts(kept).to(device), lambda: iterate_blocks(kept, device), width, device)
        checkpoint = checkpoint_for(place, asdict(self), resume=resume)
        loss = math.nan
        for step in train(model, kept, self.course(), device, checkpoint):
            loss = step.loss
            yield step
        made = self._finished(model.result(), kept.vocabulary, loss)
        if checkpoint is not None:
            checkpoint.remove()
        return made

    def _finished(self, result: Mapping[str, Tensor], vocabulary: Vocabulary, loss: float) -> Result:
        if not torch.isfinite(result["vectors"]).all():  # its last steps no loss has seen
            raise divergence_error(self.rate)
        vectors = tidied(result["vectors"], vocabulary, self.directions)
        extra = {name: to_numpy(tensor.detach()) for name, tensor in result.items() if name != "vectors"}
        notes = {"loss": loss} if math.isfinite(loss) else {}  # without an epoch there is none
        return Result(WordVectors(vocabulary, vectors), notes, extra)


def training_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
