"""Progress events, and generators that yield them and return their result."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
Y = TypeVar("Y")
Z = TypeVar("Z")


@dataclass(frozen=True)
class Progress:
    """The state of one phase of the work and, where it is known, of the whole."""

    stage: str  # shown to people; of a run, one of `Phase`
    done: int
    total: int | None  # None: not known
    unit: str  # what `done` counts; empty: nothing is counted
    seconds: float  # since the stage began
    remark: str = ""
    subject: str = ""  # which method
    step: str = ""  # of a recipe, as in "2 of 5, distill"
    note: str = ""  # a sentence that stays on the screen
    work: tuple[float, float] | None = None  # (done, total) by duration, where `done` and `total` are not
    fraction: float | None = None  # of the whole run; never decreases
    remaining: float | None = None  # seconds until the end of the run, estimated

    @property
    def title(self) -> str:
        """The step of the recipe, if any, the stage and its subject."""
        title = f"{self.stage} ({self.subject})" if self.subject else str(self.stage)
        return f"{self.step}: {title}" if self.step else title

    @property
    def part(self) -> tuple[float, float] | None:
        """How much of the stage is done, of how much; None: not known."""
        return self.work or ((float(self.done), float(self.total)) if self.total else None)


Listener = Callable[[Progress], object]


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


def format_bytes(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def format_duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
