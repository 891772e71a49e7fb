"""The base of a baseline, and the training loop that several of them share."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.errors import UsageError
from stillvec.result import Result
from stillvec.training.schedule import TrainingProgress, divergence_error

if TYPE_CHECKING:  # GloVe and gensim's methods do without torch
    from stillvec.training.checkpoint import Checkpoint

_MAY_BE_ZERO = ("alpha", "dropped_ngrams", "prior", "scrambled", "seed", "subsample")


@dataclass(frozen=True)
class Resources:
    """What a training may use; none of it is a setting of the method."""

    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class Baseline:
    """A method without a teacher, and the settings that all of them have."""

    SUMMARY: ClassVar[str]
    PAPERS: ClassVar[tuple[str, ...]] = ()
    RENAMED: ClassVar[Mapping[str, str]] = {}
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {}  # the settings of papers
    resumes: ClassVar[bool] = True  # it uses the checkpoint
    parsed: ClassVar[bool] = False  # it needs dependency parses
    has_contexts: ClassVar[bool] = False  # its vectors come with a context table, one row per word
    settings: str = "stillvec"  # or a paper's settings, by their name
    dim: int = 300  # dimensions of the vectors
    epochs: int = 5  # passes over the corpus
    rate: float = 0.05  # initial learning rate; falls to a hundredth
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        """UsageError for a number that is out of range or not finite; None stands for a default."""
        for name, value in vars(self).items():
            if name == "power" or not isinstance(value, int | float) or isinstance(value, bool):
                continue
            if not (0 < value < math.inf or (value == 0 and name in _MAY_BE_ZERO)):
                expected = "0 or more" if name in _MAY_BE_ZERO else "a finite number above 0"
                raise UsageError.expected(expected, f"{value:g}", where=f"setting {name!r} of {type(self).__name__}")

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        """Train on a corpus."""
        raise NotImplementedError


@dataclass(frozen=True)
class SampledBaseline(Baseline):
    """A baseline that trains by negative sampling."""

    negatives: int = 10  # negatives per target
    subsample: float = 1e-4  # t: an occurrence of a word is kept with probability sqrt(t/f) + t/f
    power: float = 0.75  # exponent of the word counts when negatives are drawn


class JobResult(NamedTuple):
    n_targets: int
    loss: float  # summed over the targets
    n_items: int  # words, sentences or pairs, whatever the method counts its progress in


class ThreadedModel(Protocol):
    """A model whose jobs several threads run at once, sharing its tables without locks."""

    def train_job(self, job: Any) -> JobResult:
        """One step, or a few."""

    def tensors(self) -> Mapping[str, Any]:
        """Everything that training changes, in place, by name: tensors or arrays."""


def train_epochs(
    method: Baseline,
    model: ThreadedModel,
    blocks: Callable[[int], Iterable[Iterable[Any]]],
    parts: Sequence[int],
    n_words: int,
    resources: Resources,
) -> Generator[TrainingProgress, None, float]:
    """Train for `method.epochs` epochs; returns the mean loss of the last one, NaN if none was left to train.

    An epoch has parts, whose jobs count so many items; a checkpoint may follow each part. `blocks(number)` gives the
    jobs of a part, numbered over all epochs, some at a time. Progress is counted in words, `n_words` per epoch.
    """
    n_done = resources.checkpoint.restore(model) if resources.checkpoint is not None else 0
    mean, loss, n_targets, total = math.nan, 0.0, 0, sum(parts)
    with _single_torch_thread(), ThreadPoolExecutor(resources.threads) as pool:
        apply = pool.map if resources.threads > 1 else map
        for number in range(n_done, method.epochs * len(parts)):
            epoch, part = divmod(number, len(parts))
            n_items = sum(parts[:part])
            if part == 0:
                loss, n_targets = 0.0, 0
            for result in chain.from_iterable(apply(model.train_job, jobs) for jobs in blocks(number)):
                loss, n_targets, n_items = loss + result.loss, n_targets + result.n_targets, n_items + result.n_items
                if not math.isfinite(loss):
                    raise divergence_error(method.rate)
                done = epoch * n_words + n_words * n_items // total
                yield TrainingProgress(done, method.epochs * n_words, f"loss {loss / max(n_targets, 1):.4f}")
            if not all(np.isfinite(np.asarray(table)).all() for table in model.tensors().values()):
                raise divergence_error(method.rate)
            mean = loss / n_targets if n_targets else mean
            if resources.checkpoint is not None:
                resources.checkpoint.write(model, number + 1)
    return mean


def _single_torch_thread() -> AbstractContextManager[None]:
    if "torch" not in sys.modules:
        return nullcontext()
    from stillvec.teachers.device import torch_threads

    return torch_threads(1)


def loss_note(loss: float) -> dict[str, float]:
    """The loss for the notes; none where a resumed run had nothing left to train."""
    return {"loss": loss} if math.isfinite(loss) else {}
