"""Adam (Kingma & Ba 2015), of whole tensors or of the rows that a batch touched: a row counts its own steps."""

from __future__ import annotations

import torch
from torch import Tensor

_FIRST, _SECOND = 0.9, 0.999  # how much of the means stays
_LEAST = 1e-8


class Adam:
    """A tensor that is learnt, with the running means of its gradient and of its square."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows  # (R, ...)
        self.first, self.second = torch.zeros_like(rows), torch.zeros_like(rows)
        self.steps = torch.zeros(len(rows), *(1 for _ in rows.shape[1:]))  # (R, 1, ...)

    def update(self, gradient: Tensor, rate: float, rows: Tensor | None = None) -> None:
        """One step on `rows`, which differ; None: on all."""
        here = slice(None) if rows is None else rows
        steps = self.steps[here] + 1
        first = torch.lerp(self.first[here], gradient, 1 - _FIRST)
        second = self.second[here].mul(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
        self.steps[here], self.first[here], self.second[here] = steps, first, second
        spread = (second / (1 - _SECOND**steps)).sqrt_().add_(_LEAST)
        self.rows[here] -= rate * first / (1 - _FIRST**steps) / spread
