"""Signs of life: a bar on a terminal, a line every few seconds elsewhere, both on standard error."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from stillvec.errors import StillvecWarning

_EVERY = 10.0  # seconds between plain lines


class ProgressEvent(Protocol):
    """What long work yields: `ProgressEvent` of pipeline or evaluate."""

    @property
    def stage(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int | None: ...
    @property
    def unit(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def remark(self) -> str: ...


def watch(steps: Iterable[ProgressEvent], *, quiet: bool = False) -> None:
    """Run the steps to their end and show how far they are."""
    with warnings_told():
        bar = None if quiet else _bar()
        if quiet:
            for _ in steps:
                pass
        elif bar is None:
            _lines(steps)
        else:
            with bar:
                _drawn(steps, bar)


@contextmanager
def warnings_told() -> Iterator[None]:
    """Our warnings as notes at the end, other libraries' not at all."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", StillvecWarning)
        yield
    for each in told:
        if issubclass(each.category, StillvecWarning):
            print(f"Note: {each.message}", file=sys.stderr)


def _bar() -> Any:
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ModuleNotFoundError:
        return None
    columns = ("{task.description}", BarColumn(), TextColumn("{task.fields[pace]}"), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _drawn(steps: Iterable[ProgressEvent], bar: Any) -> None:
    stage, task = None, None
    for step in steps:
        if step.stage != stage:
            if task is not None:
                bar.remove_task(task)
            stage, task = step.stage, bar.add_task(step.stage, total=step.total, pace="")
        bar.update(task, completed=step.done, total=step.total, pace=_pace(step))


def _lines(steps: Iterable[ProgressEvent]) -> None:
    stage, said = None, 0.0
    for step in steps:
        now = time.perf_counter()
        if step.stage != stage or now - said > _EVERY:
            print(_line(step), file=sys.stderr, flush=True)
            stage, said = step.stage, now


def _line(step: ProgressEvent) -> str:
    if not step.unit or not step.done:
        return f"{step.stage}: {step.remark}" if step.remark else step.stage
    share = f" of {step.total:,}" if step.total else ""
    left = ""
    if step.total and step.done * 20 >= step.total:  # a guess from less is none
        rest = max(0.0, step.seconds * (step.total - step.done) / step.done)
        left = f", about {rest:,.0f} s left"
    return f"{step.stage}: {step.done:,}{share} {step.unit}{_pace(step)}{left}"


def _pace(step: ProgressEvent) -> str:
    pace = f", {step.done / step.seconds:,.0f} {step.unit} a second" if step.unit and step.seconds > 0.1 else ""
    return f"{pace}, {step.remark}" if step.remark else pace
