"""Progress of long work: generators that yield `Progress` events and return their result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
Y = TypeVar("Y")
Z = TypeVar("Z")


@dataclass(frozen=True)
class Progress:
    """The state of one stage of the work."""

    stage: str  # shown to people
    done: int
    total: int | None  # None: not known
    unit: str  # what `done` counts; empty: nothing is counted
    seconds: float  # since the stage began
    remark: str = ""


def format_bytes(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


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


Listener = Callable[[Progress], object]


@contextmanager
def show_progress(progress: bool | Listener) -> Iterator[Listener | None]:
    """The function to call with each event: `progress`, or a bar if it is True and standard error is a terminal."""
    if callable(progress):
        yield progress
    elif progress and sys.stderr.isatty():
        with ProgressBar() as bar:
            yield bar
    else:
        yield None


class ProgressBar:
    """A bar on standard error: `with ProgressBar() as bar`, then `bar(event)`."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = ("{task.description}", BarColumn(), TextColumn("{task.fields[detail]}", markup=False))
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._stage: str | None = None
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, event: Progress) -> None:
        if event.stage != self._stage:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._stage, self._task = event.stage, self._bar.add_task(event.stage, total=event.total, detail="")
        self._bar.update(self._task, completed=event.done, total=event.total, detail=describe_progress(event))


def describe_progress(event: Progress) -> str:
    """`250 of 1,000 words, 50 words/s, about 15 s left`."""
    parts = []
    if event.unit and event.done:
        total = f" of {event.total:,}" if event.total else ""
        parts.append(f"{event.done:,}{total} {event.unit}")
        if event.seconds > 0.1:
            parts.append(f"{event.done / event.seconds:,.0f} {event.unit}/s")
        if event.total and event.total / 20 <= event.done < event.total:  # an estimate from less means nothing
            parts.append(f"about {format_duration(event.seconds * (event.total - event.done) / event.done)} left")
    return ", ".join([*parts, event.remark] if event.remark else parts)


def format_duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
