"""Training on contexts: shards in a seeded order, a rate that falls, a watch on the loss.

Whatever is random in a shard comes from a seed and the shard's number, so a run that was stopped goes on from its last
checkpoint to the same result, and on a CPU two runs agree to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from stillvec.errors import TrainingError, UsageError
from stillvec.learners.context_blocks import ContextBlock, block_size, count_blocks, read_block
from stillvec.learners.training_checkpoint import Checkpoint
from stillvec.statistics import Statistics

_LOOK = 32  # batches between two looks at the loss: a look waits for the device
_WORSE = 3.0  # times the first loss: no training that works gets there


class TrainingStep(NamedTuple):
    """A sign of life."""

    done: int  # sentences, over all epochs
    total: int
    loss: float  # a target, lately


@dataclass(frozen=True)
class Schedule:
    """How long and how fast."""

    epochs: int = 1
    rate: float = 1e-3
    decay: str = "linear"  # to a hundredth of the rate; or "constant"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.decay not in ("linear", "constant"):
            raise UsageError(f"The rate decays 'linear' or stays 'constant', and {self.decay!r} came.")
        if self.epochs < 0 or not 0 < self.rate < math.inf:
            raise UsageError(f"Training takes 0 epochs or more at a rate above 0, not {self.epochs} at {self.rate}.")
        if self.seed < 0:
            raise UsageError(f"The setting seed is at least 0, and {self.seed} came.")

    def rate_at(self, share: float) -> float:
        """The rate when this share of the way is gone."""
        return self.rate if self.decay == "constant" else self.rate * max(0.01, 1 - share)


class TrainableModel(Protocol):
    """What is trained: it learns from a shard, batch by batch, and can be written down."""

    def learn(
        self, shard: ContextBlock, generator: torch.Generator, course: Schedule, begun: float, ended: float
    ) -> Iterator[tuple[Tensor, int, float]]:
        """Yields the loss and the targets of each batch, and the share of the shard learnt; shares of the way go in."""

    def tensors(self) -> dict[str, Tensor]:
        """All that changes, in place."""

    def result(self) -> dict[str, Tensor]:
        """The `vectors`, and what else is worth keeping, by name."""


def train(
    model: TrainableModel,
    kept: Statistics,
    course: Schedule,
    device: torch.device,
    checkpoint: Checkpoint | None = None,
) -> Iterator[TrainingStep]:
    """All shards, epoch by epoch; TrainingError as soon as the loss shows that it leads nowhere."""
    begun = checkpoint.restore(model) if checkpoint is not None else 0
    try:
        yield from _train(model, kept, course, device, checkpoint, begun)
    except TrainingError:
        if checkpoint is not None:  # nothing good comes of going on from there
            checkpoint.remove()
        raise


def _train(
    model: TrainableModel,
    kept: Statistics,
    course: Schedule,
    device: torch.device,
    checkpoint: Checkpoint | None,
    begun: int,
) -> Iterator[TrainingStep]:
    count = count_blocks(kept)
    watch = LossMonitor(course)
    total = course.epochs * len(kept["stored:lengths"])
    done = 0
    for number in range(course.epochs * count):
        epoch, place = divmod(number, count)
        chosen = int(_random(course.seed, epoch).permutation(count)[place])
        if number < begun:
            done += block_size(kept, chosen)
            continue
        shard = read_block(kept, chosen, device, _random(course.seed, epoch, place + 1))
        whole = course.epochs * count
        for share in learn_block(model, shard, course, number, number / whole, (number + 1) / whole, watch):
            yield TrainingStep(done + int(share * len(shard.lengths)), total, watch.loss)
        done += len(shard.lengths)
        if checkpoint is not None:
            checkpoint.write(model, number + 1)
        if number == course.epochs * count - 1:
            check_final_loss(model, shard, course, watch)


class FrozenSchedule(Schedule):
    """Looks, and changes nothing."""

    def rate_at(self, share: float) -> float:
        return 0.0


def check_final_loss(model: TrainableModel, shard: ContextBlock, course: Schedule, watch: LossMonitor) -> None:
    """The loss after the last step, on a batch: each batch told its loss before its own step."""
    generator = torch.Generator(shard.contexts.device)
    generator.manual_seed(_seed(course.seed))
    still = FrozenSchedule(course.epochs, course.rate, course.decay, course.seed)
    for loss, targets, _ in model.learn(shard, generator, still, 1.0, 1.0):
        watch.judge(loss, targets)
        return


def learn_block(
    model: TrainableModel,
    shard: ContextBlock,
    course: Schedule,
    number: int,
    begun: float,
    ended: float,
    watch: LossMonitor,
) -> Iterator[float]:
    """One shard, which takes the way from the share `begun` to `ended`; yields how much of it is learnt."""
    generator = torch.Generator(shard.contexts.device)
    generator.manual_seed(_seed(course.seed, number))
    for batch, (loss, targets, share) in enumerate(model.learn(shard, generator, course, begun, ended)):
        watch.add(loss, targets)
        if watch.fresh:  # the one loss that no step has spoilt
            watch.look()
        elif batch % _LOOK == _LOOK - 1:
            watch.look()
            yield share
    watch.look()
    yield 1.0


class LossMonitor:
    """The mean loss of the last batches, against that of the first one."""

    def __init__(self, course: Schedule) -> None:
        self.course = course
        self.loss = math.nan
        self._first = math.nan
        self._sums: list[Tensor] = []
        self._targets = 0

    @property
    def fresh(self) -> bool:
        return math.isnan(self._first)

    def add(self, loss: Tensor, targets: int) -> None:
        self._sums.append(loss)
        self._targets += targets

    def look(self) -> None:
        if not self._targets:
            return
        self.loss = float(torch.stack(self._sums).sum()) / self._targets
        self._sums, self._targets = [], 0
        self._first = self.loss if self.fresh else self._first
        self._judge(self.loss)

    def judge(self, loss: Tensor, targets: int) -> None:
        """Whether this batch shows that training led nowhere; it does not count among the losses told."""
        self._judge(float(loss) / max(targets, 1))

    def _judge(self, loss: float) -> None:
        if not math.isfinite(loss) or loss > _WORSE * self._first + 1:
            raise divergence_error(self.course.rate, f"the loss of a target went from {self._first:.3g} to {loss:.3g}")


def divergence_error(rate: float, what: str = "its last step led to numbers without end") -> TrainingError:
    return TrainingError(f"Training diverged: {what} at a rate of {rate:g}; give a lower one (rate={rate / 10:g}).")


def _random(*numbers: int) -> np.random.Generator:
    return np.random.default_rng([*numbers])


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence([*numbers]).generate_state(1, np.uint64)[0] >> np.uint64(1))
