"""Mean losses, watched for divergence."""

import math

import torch
from torch import Tensor

from stillvec.training.schedule import divergence_error

_WORSE = 3.0  # times the first loss: training that works never gets there


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
        self._check(self.loss)

    def check_batch(self, loss: Tensor, n_targets: int) -> None:
        """TrainingError if this batch shows divergence; it does not count towards `loss`."""
        self._check(float(loss) / max(n_targets, 1))

    def _check(self, loss: float) -> None:
        if not math.isfinite(loss) or loss > _WORSE * self._first + 1:
            raise divergence_error(self.rate, f"the loss per target went from {self._first:.3g} to {loss:.3g}")
