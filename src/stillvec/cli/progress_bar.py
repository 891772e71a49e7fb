"""Progress on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from stillvec.cli.console import format_duration
from stillvec.errors import StillvecWarning
from stillvec.progress import Progress

_INTERVAL = 10.0  # seconds between plain lines


def watch(events: Iterable[Progress], *, quiet: bool = False) -> None:
    """Run the work to its end and show how far it is."""
    with show_warnings():
        if quiet:
            for _ in events:
                pass
        elif sys.stderr.isatty():
            _draw_bar(events)
        else:
            _print_lines(events)


@contextmanager
def show_warnings() -> Iterator[None]:
    """Print our warnings as notes at the end, and hide those of other libraries."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StillvecWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, StillvecWarning):
            print(f"Note: {warning.message}", file=sys.stderr)


def _draw_bar(events: Iterable[Progress]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = ("{task.description}", BarColumn(), TextColumn("{task.fields[detail]}", markup=False))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        stage, task = None, None
        for event in events:
            if task is None or event.stage != stage:
                if task is not None:
                    bar.remove_task(task)
                stage, task = event.stage, bar.add_task(event.stage, total=event.total, detail="")
            bar.update(task, completed=event.done, total=event.total, detail=_detail(event))


def _print_lines(events: Iterable[Progress]) -> None:
    stage, printed = None, 0.0
    for event in events:
        now = time.perf_counter()
        if event.stage != stage or now - printed > _INTERVAL:
            detail = _detail(event)
            print(f"{event.stage}: {detail}" if detail else event.stage, file=sys.stderr, flush=True)
            stage, printed = event.stage, now


def _detail(event: Progress) -> str:
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
