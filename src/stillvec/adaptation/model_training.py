"""Training of a whole model: AdamW, a linear schedule, zeros that stay zero, gradual pruning, checkpoints.

All randomness of a step (its batch, dropout, masks) comes from the seed and the number of the step, so that a training
that is resumed gives the same bytes as one that was not interrupted, on a CPU.

With `sparsity`, the smallest weights of each matrix become zero during the first tenth of the steps, by the schedule of
Zhu & Gupta (2017), `s_t = s (1 - (1 - t / T)³)`, and stay zero.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stillvec.errors import TrainingError, UsageError
from stillvec.progress import Phase, Progress
from stillvec.registry import check_least, check_positive
from stillvec.teachers.matrices import name_matrices
from stillvec.teachers.precision_choice import gains_from_bf16
from stillvec.training.checkpoint import Checkpoint
from stillvec.training.schedule import divergence_error

Rows = NDArray[np.int64]
Precision = Literal["fp32", "bf16"]
RAMP = 0.1  # of the steps: the learning rate rises, and sparsity is reached
_CLIP = 1.0  # norm of the gradient
_NEW = 10.0  # times the learning rate, for parameters that the teacher did not have
_DECAY = 0.01
_CHECK_EVERY = 20  # steps: reading a loss waits for a GPU
_WORSE = 3.0  # times the first loss
_MASKS_EVERY = 10  # steps, while sparsity rises


@dataclass(frozen=True, kw_only=True)
class TrainedStep:
    """The settings that all steps that train share."""

    epochs: float = 3.0  # passes over the training data
    rate: float | None = None  # highest learning rate; of new parameters ten times as high
    batch: int = 32  # texts per step
    length: int = 128  # tokens of a text; longer ones are cut
    precision: Literal["auto", "fp32", "bf16"] = "auto"  # of products; weights and their updates are in fp32
    sparsity: float = 0.0  # share of zeros that each matrix is pruned to, gradually, in the first tenth of the steps
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(self, "epochs", "rate")
        check_least(self, batch=1, length=8, seed=0)
        if not 0 <= self.sparsity < 1:
            raise UsageError.expected("0 to 1", self.sparsity, where="sparsity")


class ModelTrainer:
    """A model, its optimizer, and the weights that were best on development items."""

    def __init__(
        self,
        model: nn.Module,
        settings: TrainedStep,
        rate: float,
        n_steps: int,
        *,
        new: Sequence[str] = (),
        kept: Sequence[str] = (),
        n_frozen: int = 0,
        selects: bool = False,
    ) -> None:
        """`new` are parameters that the teacher did not have, which alone are trained in the first `n_frozen` steps.

        `kept` are tensors whose zeros stay zero. With `selects`, the best weights are remembered.
        """
        self.model, self.settings, self.rate, self.n_steps, self.n_frozen = model, settings, rate, n_steps, n_frozen
        self.device = next(model.parameters()).device
        self._outer, inner = next((label, part) for label, part in model.named_modules() if hasattr(part, "base_model"))
        self.precision = choose_precision(settings.precision, inner)
        self.parameters = {name: weights for name, weights in model.named_parameters() if weights.requires_grad}
        made = {*new}
        groups: dict[tuple[float, float], list[Tensor]] = {}  # few: the optimizer takes as long for each
        for name, weights in self.parameters.items():
            groups.setdefault((_NEW if name in made else 1.0, _DECAY * (weights.ndim > 1)), []).append(weights)
        self.optimizer = torch.optim.AdamW(
            [{"params": group, "scale": scale, "weight_decay": decay} for (scale, decay), group in groups.items()],
            lr=rate,
            fused=self.device.type == "cuda",
        )
        for weights in self.parameters.values():
            zeros = torch.zeros_like(weights)
            count = torch.zeros((), device=weights.device if self.device.type == "cuda" else None)
            self.optimizer.state[weights] = {"step": count, "exp_avg": zeros, "exp_avg_sq": torch.zeros_like(weights)}
        self.best = {name: weights.detach().clone() for name, weights in self.parameters.items() if selects}
        self.scores = torch.full(
            (1 + math.ceil(settings.epochs),), math.nan, dtype=torch.float64
        )  # on development items
        base: Any = inner.base_model
        prefix = next(label for label, part in model.named_modules() if part is base)
        self.matrices = {f"{prefix}.{name}" if prefix else name for name in name_matrices(base)} & {*self.parameters}
        names = {f"{before}.{name}" for name in kept for before in (prefix, self._outer)} | {*kept}
        self.masks = {name: self.parameters[name] != 0 for name in self.parameters if name in names}

    def name_pruned(self) -> set[str]:
        """The tensors whose zeros stay zero, as they are called in a folder."""
        return {name.removeprefix(f"{self._outer}.") for name in self.masks}

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training changes, for checkpoints."""
        tensors = {f"model:{name}": weights.detach() for name, weights in self.parameters.items()}
        tensors |= {f"best:{name}": weights for name, weights in self.best.items()} | {"scores": self.scores}
        for name, weights in self.parameters.items():
            tensors |= {f"{key}:{name}": value for key, value in self.optimizer.state[weights].items()}
        return tensors

    def restore_masks(self, done: int) -> None:
        """The masks of a training that is resumed: zeros are in the weights."""
        names = {*self.masks} | (self.matrices if self.settings.sparsity and done else set())
        self.masks = {name: self.parameters[name] != 0 for name in names}

    def update(self, number: int, loss: Tensor) -> None:
        """One step of the optimizer."""
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters.values(), _CLIP)
        rate = self.rate * scale_rate(number / self.n_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["scale"] if number >= self.n_frozen or group["scale"] > 1 else 0.0
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._prune(number)
        with torch.no_grad():
            for name, mask in self.masks.items():
                self.parameters[name].mul_(mask)

    @torch.no_grad()
    def _prune(self, number: int) -> None:
        last = max(1, round(RAMP * self.n_steps))
        if not self.settings.sparsity or number >= last or (number % _MASKS_EVERY and number != last - 1):
            return
        share = self.settings.sparsity * (1 - (1 - (number + 1) / last) ** 3)
        for name in self.matrices:
            self.masks[name] = keep_largest(self.parameters[name], share)

    def keep_best(self, epoch: int, score: float) -> bool:
        """Remember the weights if they are better than before; whether they are."""
        known = self.scores[~self.scores.isnan()]
        better = not len(known) or score > float(known.max())
        self.scores[epoch] = score
        if better:
            for name, weights in self.best.items():
                weights.copy_(self.parameters[name].detach())
        return better

    @torch.no_grad()
    def take_best(self) -> None:
        for name, weights in self.best.items():
            self.parameters[name].copy_(weights)


def keep_largest(weights: Tensor, share: float) -> Tensor:
    """The mask of all but the smallest `share` of the values; values of one size stay or go together."""
    n_zeros = round(share * weights.numel())
    if not n_zeros:
        return torch.ones_like(weights, dtype=torch.bool)
    sizes = weights.abs()
    return sizes > sizes.flatten().float().kthvalue(n_zeros).values


def scale_rate(progress: float) -> float:
    """The learning rate after a fraction of the training: it rises for a tenth, then falls to zero."""
    return min((progress + 1e-3) / RAMP, 1.0) if progress < RAMP else (1 - progress) / (1 - RAMP)


def train_model(
    trainer: ModelTrainer,
    compute_loss: Callable[[int, np.random.Generator], Tensor],
    checkpoint: Checkpoint | None,
    *,
    evaluate: Callable[[], float] | None = None,
    per_epoch: int = 0,
    patience: int = 2,
    task_of: Callable[[int], int] = lambda step: 0,
) -> Generator[Progress, None, int]:
    """Train; `compute_loss(step, random)` is the mean loss of a batch. Returns the number of steps done.

    `task_of(step)` is the task of a step, if there are several: losses are compared with the first ones of their task.
    With `evaluate`, higher is better: it is called after each epoch, the best weights are taken at the end, and
    training stops after `patience` epochs that are not better.
    """
    start, settings = time.perf_counter(), trainer.settings
    done = checkpoint.restore(trainer) if checkpoint is not None else 0
    trainer.restore_masks(done)
    first: dict[int, float] = {}
    losses: dict[int, list[Tensor]] = {}
    for number in range(done, trainer.n_steps):
        trainer.model.train()
        with seed_step(settings.seed, number, trainer.device), autocast(trainer.device, trainer.precision):
            value = compute_loss(number, np.random.default_rng([settings.seed, number]))
            losses.setdefault(task_of(number), []).append(value.detach())
            trainer.update(number, value)
        if number % _CHECK_EVERY == 0 or number == trainer.n_steps - 1:
            loss = float(torch.stack([*chain(*losses.values())]).mean())
            for task, values in losses.items():
                now = float(torch.stack(values).mean())
                before = first.setdefault(task, now)
                if not math.isfinite(now) or now > _WORSE * before + 1:
                    if checkpoint is not None:
                        checkpoint.remove()
                    raise divergence_error(trainer.rate, f"the loss went from {before:.3g} to {now:.3g}")
            losses.clear()
            seconds = time.perf_counter() - start
            yield Progress(Phase.TRAINING, number + 1, trainer.n_steps, "steps", seconds, f"loss {loss:.3f}")
        is_end = number == trainer.n_steps - 1
        if evaluate is not None and per_epoch and ((number + 1) % per_epoch == 0 or is_end):
            trainer.model.eval()
            with torch.no_grad(), autocast(trainer.device, trainer.precision):
                score = evaluate()
            trainer.keep_best(math.ceil((number + 1) / per_epoch), score)
            if _stalls(trainer.scores, patience):
                done = number + 1
                break
        if checkpoint is not None:
            checkpoint.write(trainer, number + 1)
        done = number + 1
    if evaluate is not None:
        trainer.take_best()
    trainer.model.eval()
    _check_finite(trainer.parameters, trainer.rate)
    return done


def _stalls(scores: Tensor, patience: int) -> bool:
    known = scores[~scores.isnan()].tolist()
    return len(known) > patience and max(known[-patience:]) <= max(known[:-patience])


def _check_finite(parameters: Mapping[str, Tensor], rate: float) -> None:
    if not all(bool(torch.isfinite(weights.sum())) for weights in parameters.values()):
        raise divergence_error(rate)


@contextmanager
def seed_step(seed: int, number: int, device: torch.device) -> Iterator[None]:
    """Seed torch for one step, and leave its global generators as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int(np.random.default_rng([seed, number, 1]).integers(1 << 62)))
        yield


def choose_precision(name: Literal["auto", "fp32", "bf16"], model: nn.Module) -> Precision:
    """`auto` is bf16 on a GPU, and for a model that is wide enough on a CPU that computes in bf16."""
    if name != "auto":
        return name
    on_gpu = next(model.parameters()).device.type == "cuda"
    return "bf16" if on_gpu or gains_from_bf16(model) else "fp32"


def autocast(device: torch.device, precision: Precision) -> Any:
    return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()


def require_steps(n_items: int, settings: TrainedStep) -> tuple[int, int]:
    """Steps per epoch, and in all."""
    if n_items < 1:
        raise TrainingError("There is nothing to train on.", code="empty")
    per_epoch = math.ceil(n_items / settings.batch)
    return per_epoch, max(1, round(per_epoch * settings.epochs))


def draw_rows(n_items: int, step: int, per_epoch: int, settings: TrainedStep) -> Rows:
    """The items of a step: a seeded order of each epoch, cut into batches."""
    epoch, place = divmod(step, per_epoch)
    return _order_items(n_items, epoch, settings.seed)[place * settings.batch : (place + 1) * settings.batch]


@lru_cache(maxsize=2)  # a long text has so many rows that a new order in each step takes longer than the step
def _order_items(n_items: int, epoch: int, seed: int) -> Rows:
    return np.random.default_rng([seed, epoch, 2]).permutation(n_items)
