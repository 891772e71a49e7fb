"""The protocol of a baseline, and the training loop that several of them share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.errors import UsageError
from stillvec.result import Result
from stillvec.training.schedule import TrainingProgress, divergence_error

if TYPE_CHECKING:  # gensim's methods do without torch
    from torch import Tensor

    from stillvec.training.checkpoint import Checkpoint


@dataclass(frozen=True)
class Resources:
    """What a training may use; none of it is a setting of the method."""

    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    checkpoint: Checkpoint | None = None


class Baseline(Protocol):
    """A frozen dataclass of settings, among them `dim`, `epochs` and `seed`."""

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        """Train on a corpus."""


class JobResult(NamedTuple):
    n_targets: int
    loss: float  # summed over the targets
    n_items: int  # words, sentences or pairs, whatever the method counts its progress in


class ThreadedModel(Protocol):
    """A model whose jobs several threads run at once, sharing its tables without locks."""

    def train_job(self, job: Any) -> JobResult:
        """One step, or a few."""

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training changes, in place, by name."""


def check_settings(method: object, positive: Collection[str], non_negative: Collection[str]) -> None:
    """UsageError for a setting that is out of range or not finite; None stands for a default."""
    for name in (*positive, *non_negative):
        value = getattr(method, name)
        if value is not None and not (0 < value < math.inf or (value == 0 and name in non_negative)):
            expected = "a finite number above 0" if name in positive else "0 or more"
            raise UsageError.expected(expected, f"{value:g}", where=f"setting {name!r} of {type(method).__name__}")


@contextmanager
def map_jobs(threads: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` over this many threads."""
    with ThreadPoolExecutor(threads) as pool:
        yield pool.map if threads > 1 else map


def train_epochs(
    method: Any,
    model: ThreadedModel,
    blocks: Callable[[int], Iterator[Iterable[Any]]],
    n_items: int,
    n_words: int,
    resources: Resources,
) -> Generator[TrainingProgress, None, float]:
    """Train for `method.epochs` epochs; returns the mean loss of the last one, NaN if none was left to train.

    `blocks` gives the jobs of an epoch, some at a time; progress is counted in words, of which an epoch has `n_words`
    where its jobs count `n_items`. A checkpoint may follow each epoch.
    """
    from stillvec.teachers.threads import torch_threads
    from stillvec.training.loss_monitor import EpochLoss

    n_done = resources.checkpoint.restore(model) if resources.checkpoint is not None else 0
    mean = math.nan
    with torch_threads(1), map_jobs(resources.threads) as apply:
        for epoch in range(n_done, method.epochs):
            loss, items = EpochLoss(method.rate), 0
            for jobs in blocks(epoch):
                for result in apply(model.train_job, jobs):
                    loss.add(result.loss, result.n_targets)
                    items += result.n_items
                    done = epoch * n_words + n_words * items // n_items
                    yield TrainingProgress(done, method.epochs * n_words, loss.remark)
            if not all(tensor.isfinite().all() for tensor in model.tensors().values()):
                raise divergence_error(method.rate)
            mean = loss.mean
            if resources.checkpoint is not None:
                resources.checkpoint.write(model, epoch + 1)
    return mean


def loss_note(loss: float) -> dict[str, float]:
    """The loss for the notes; none where a resumed run had nothing left to train."""
    return {"loss": loss} if math.isfinite(loss) else {}
