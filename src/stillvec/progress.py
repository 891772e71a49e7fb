"""Long work is a generator of `Progress` events that returns its result; these helpers run one to its end."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
Y = TypeVar("Y")
Z = TypeVar("Z")


@dataclass(frozen=True)
class Progress:
    """How far a stage of the work is."""

    stage: str  # in plain words, for a person
    done: int
    total: int | None  # None: not known
    unit: str  # what `done` counts; empty: nothing is counted
    seconds: float  # since the stage began
    remark: str = ""


def drain(work: Generator[Y, None, T], listener: Callable[[Y], object] | None = None) -> T:
    """Run a generator to its end, give each event to `listener`, and return its result."""
    while True:
        try:
            event = next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if listener is not None:
            listener(event)


def relay(work: Generator[Y, None, T], convert: Callable[[Y], Z]) -> Generator[Z, None, T]:
    """The same generator with its events converted."""
    while True:
        try:
            event = next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        yield convert(event)
