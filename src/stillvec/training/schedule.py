"""How long and at which learning rate to train; progress events; the error of a training that diverges."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from stillvec.errors import TrainingError, UsageError
from stillvec.registry import check_least

_LOWEST = 0.01  # of the initial rate, at the end of a linear decay


class TrainingProgress(NamedTuple):
    done: int  # sentences or words, over all epochs
    total: int
    remark: str = ""
    loss: float = math.nan  # mean per target of the last batches


@dataclass(frozen=True)
class Schedule:
    epochs: int = 1
    rate: float = 1e-3  # initial learning rate
    decay: str = "linear"  # to a hundredth of the initial rate; or "constant"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.decay not in ("linear", "constant"):
            raise UsageError.expected("'linear' or 'constant'", repr(self.decay), where="setting 'decay'")
        check_least(self, epochs=0, seed=0)
        if not 0 < self.rate < math.inf:
            raise UsageError.expected("a finite number above 0", self.rate, where="setting 'rate'")

    def lr_at(self, progress: float) -> float:
        """The learning rate after this fraction of the training."""
        return self.rate if self.decay == "constant" else self.rate * max(_LOWEST, 1 - progress)


def divergence_error(rate: float, what: str = "the result is not finite") -> TrainingError:
    message = f"Training diverged: {what} at a learning rate of {rate:g}; lower it (rate={rate / 10:g})."
    return TrainingError(message, code="diverged")
