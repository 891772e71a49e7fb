"""What a baseline is: settings, and a generator that trains and tells how far it is."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.errors import TrainingError, UsageError
from stillvec.result import Result


class TrainingStep(NamedTuple):
    """A sign of life."""

    done: int  # words, over all epochs
    total: int
    remark: str = ""  # such as the loss


class EpochCheckpoint(Protocol):
    """Where training was, on disk: whoever runs a baseline gives one, of tensors by name."""

    def restore(self, model: Any) -> int:
        """Fill the model and give the number of epochs it has learnt; 0 without a checkpoint."""

    def write(self, model: Any, done: int) -> None:
        """So many epochs are learnt."""


@dataclass(frozen=True)
class Resources:
    """What a training may use; nothing of it is a setting of the method."""

    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    checkpoint: EpochCheckpoint | None = None


class Baseline(Protocol):
    """A frozen dataclass of settings, among them `dim`, `epochs` and `seed`."""

    def steps(self, text: EncodedCorpus, means: Resources) -> Generator[TrainingStep, None, Result]:
        """Train on a text."""


def check_settings(method: object, above: Mapping[str, float], least: Mapping[str, float]) -> None:
    """`above`: settings that are more than 0; `least`: settings that are 0 or more."""
    name = type(method).__name__
    for key, value in above.items():
        if not 0 < value < float("inf"):
            raise UsageError(f"{name} takes a setting {key} above 0, and {value:g} came.")
    for key, value in least.items():
        if not 0 <= value < float("inf"):
            raise UsageError(f"{name} takes a setting {key} of 0 or more, and {value:g} came.")


def diverged(rate: float) -> TrainingError:
    return TrainingError(
        f"Training diverged: it led to numbers without end at a rate of {rate:g}; "
        f"give a lower one (rate={rate / 10:g})."
    )
