"""The training loop: blocks of contexts in a seeded order, a learning rate that falls, a loss that is monitored.

All randomness of a block comes from the seed and the block's number, so an interrupted run continues from its last
checkpoint to the same result, and on a CPU two runs agree to the bit.
"""

import math
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from stillvec.errors import TrainingError
from stillvec.learners.context_blocks import ContextBlock, ContextBlocks
from stillvec.training.checkpoint import Checkpoint, HasTensors
from stillvec.training.schedule import Schedule, TrainingProgress, divergence_error

_WORSE = 3.0  # times the first loss: training that works never gets there
_CHECK_EVERY = 32  # batches: a check waits for the device


RateAt = Callable[[float], float]  # the learning rate after a fraction of a block


class BatchResult(NamedTuple):
    loss: Tensor  # summed over the targets, before the step
    n_targets: int
    progress: float  # the fraction of the block that came before


class TrainableModel(HasTensors, Protocol):
    def train_block(self, block: ContextBlock, *, generator: torch.Generator, lr_at: RateAt) -> Iterator[BatchResult]:
        """Train on the batches of a block."""

    def result(self) -> dict[str, Tensor]:
        """The `vectors`, and by name what else is worth keeping."""


class LossMonitor:
    """The mean loss per target since the last check, compared with that of the first batch.

    Losses stay on their device between checks: reading one waits for a GPU.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate  # for the message
        self.loss = math.nan
        self._first = math.nan
        self._sums: list[Tensor] = []
        self._n_targets = 0

    @property
    def is_new(self) -> bool:
        return math.isnan(self._first)

    def add(self, loss: Tensor, n_targets: int) -> None:
        self._sums.append(loss)
        self._n_targets += n_targets

    def check(self) -> None:
        """Update `loss`; TrainingError if it shows divergence."""
        if not self._n_targets:
            return
        self.loss = float(torch.stack(self._sums).sum()) / self._n_targets
        self._sums, self._n_targets = [], 0
        self._first = self.loss if self.is_new else self._first
        self.check_value(self.loss)

    def check_value(self, loss: float) -> None:
        """TrainingError if this loss per target shows divergence."""
        if not math.isfinite(loss) or loss > _WORSE * self._first + 1:
            raise divergence_error(self.rate, f"the loss per target went from {self._first:.3g} to {loss:.3g}")


def train(
    model: TrainableModel, blocks: ContextBlocks, schedule: Schedule, checkpoint: Checkpoint | None = None
) -> Iterator[TrainingProgress]:
    """Train on all blocks, epoch by epoch; TrainingError as soon as the loss shows divergence."""
    n_done = checkpoint.restore(model) if checkpoint is not None else 0
    monitor = LossMonitor(schedule.rate)
    n_steps, total, done = schedule.epochs * len(blocks), schedule.epochs * blocks.n_sentences, 0
    try:
        for step in range(n_steps):
            epoch, place = divmod(step, len(blocks))
            chosen = int(np.random.default_rng([schedule.seed, epoch]).permutation(len(blocks))[place])
            size = blocks.block_size(chosen)
            if step >= n_done:
                block = blocks.read(chosen, np.random.default_rng([schedule.seed, epoch, place + 1]))
                span = (step / n_steps, (step + 1) / n_steps)
                for progress in train_block(model, block, schedule, step, span, monitor):
                    yield TrainingProgress(done + int(progress * size), total, loss=monitor.loss)
                if checkpoint is not None:
                    checkpoint.write(model, step + 1)
                if step == n_steps - 1:
                    check_final_loss(model, block, schedule, monitor)
            done += size
    except TrainingError:
        if checkpoint is not None:  # a diverged state is useless
            checkpoint.remove()
        raise


def train_block(
    model: TrainableModel,
    block: ContextBlock,
    schedule: Schedule,
    step: int,
    span: tuple[float, float],
    monitor: LossMonitor,
) -> Generator[float, None, None]:
    """Train on one block, which takes the training from one fraction to another; yields the fraction of it done."""
    begin, end = span
    generator = _generator(block, schedule.seed, step)
    results = model.train_block(
        block, generator=generator, lr_at=lambda progress: schedule.lr_at(begin + (end - begin) * progress)
    )
    for number, result in enumerate(results):
        monitor.add(result.loss, result.n_targets)
        if monitor.is_new:  # the one loss that no step has spoilt
            monitor.check()
        elif number % _CHECK_EVERY == _CHECK_EVERY - 1:
            monitor.check()
            yield result.progress
    monitor.check()
    yield 1.0


def check_final_loss(model: TrainableModel, block: ContextBlock, schedule: Schedule, monitor: LossMonitor) -> None:
    """Check the loss after the last step on one batch, since a batch reports the loss before its own step."""
    generator = _generator(block, schedule.seed)
    for result in model.train_block(block, generator=generator, lr_at=lambda _: 0.0):
        monitor.check_value(float(result.loss) / max(result.n_targets, 1))
        return


def _generator(block: ContextBlock, *seeds: int) -> torch.Generator:
    seed = int(np.random.SeedSequence([*seeds]).generate_state(1, np.uint64)[0] >> np.uint64(1))
    return torch.Generator(block.contexts.device).manual_seed(seed)
