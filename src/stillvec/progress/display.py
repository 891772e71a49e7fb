"""How progress is shown: a bar on a terminal or in a notebook, a line every few seconds elsewhere."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from typing import Any

from stillvec.progress.events import Listener, Progress, format_duration
from stillvec.progress.phases import Phase

_LINE_SECONDS = 10.0  # between lines
_NOTEBOOK_SECONDS = 0.5  # between updates
_REDRAWS = 4  # of the bar per second, by a thread of its own
_SOON = 2.0  # seconds


def describe_progress(event: Progress, *, short: bool = False) -> str:
    """`25%, 2,500 of 10,000 words, 50 words/s, about 15 s left`, or `25%, about 15 s left, 2.5k of 10k words`."""
    if event.stage == Phase.FINISHED:
        return f"{event.seconds:,.1f} s ({event.remark})"
    parts = []
    if fraction := _fraction(event):
        parts.append(f"{min(fraction, 0.99):.0%}")
    if event.unit and event.done:
        count = _shorten if short else "{:,}".format
        total = f" of {count(max(event.total, event.done))}" if event.total else ""
        parts.append(f"{count(event.done)}{total} {event.unit}")
        if not short and event.seconds > 0.1:
            parts.append(f"{event.done / event.seconds:,.0f} {event.unit}/s")
    if event.remaining:
        left = f"about {format_duration(event.remaining)} left" if event.remaining > _SOON else "a moment left"
        parts.insert(1 if short else len(parts), left)
    return ", ".join([*parts, event.remark] if event.remark else parts)


def _shorten(count: int) -> str:
    """`999`, `12.3k`, `1.2M`."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}" if count < 100 * size else f"{count / size:,.0f}{letter}"
    return str(count)


def _fraction(event: Progress) -> float | None:
    """Of the run or, where it is only one stage, of that."""
    if event.fraction is not None:
        return event.fraction
    return event.part[0] / event.part[1] if event.part else None


@contextmanager
def show_progress(progress: bool | Listener) -> Iterator[Listener | None]:
    """The function to call with each event: `progress` or, if it is True, a bar or lines on standard error."""
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    elif (display := _find_notebook()) is not None:
        yield NotebookBar(display)
    elif sys.stderr.isatty():
        with ProgressBar() as bar:
            yield bar
    else:
        yield LinePrinter()


class LinePrinter:
    """A line at the start of each stage, every few seconds, and at the end of a stage that counts something."""

    def __init__(
        self,
        write: Callable[[str], object] = lambda text: sys.stderr.write(f"{text}\n"),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._write, self._clock = write, clock
        self._title: str | None = None
        self._pending: Progress | None = None  # the last event, if it was not written
        self._written = 0.0

    def __call__(self, event: Progress) -> None:
        if event.note:
            self._write(event.note)
            return
        if event.title != self._title and self._pending is not None and self._pending.done:
            self._write_line(self._pending)
        now = self._clock()
        if event.title == self._title and now - self._written < _LINE_SECONDS:
            self._pending = event
        elif event.stage != Phase.FINISHED:
            self._write_line(event)
            self._title, self._pending, self._written = event.title, None, now

    def _write_line(self, event: Progress) -> None:
        detail = describe_progress(event)
        self._write(f"{event.title}: {detail}" if detail else event.title)


class ProgressBar:
    """A bar on standard error: `with ProgressBar() as bar`, then `bar(event)`."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, TextColumn
        from rich.progress import Progress as RichProgress
        from rich.text import Text

        class Countdown(ProgressColumn):
            """Counts down between events."""

            def render(self, task: Any) -> Text:
                event: Progress | None = task.fields["event"]
                return Text("" if event is None else _describe_now(event, task.fields["at"]), no_wrap=True)

        console = Console(stderr=True)
        width = 20 if console.width >= 100 else 10
        columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=width), Countdown())
        self._bar = RichProgress(*columns, console=console, transient=True, refresh_per_second=_REDRAWS)
        self._task = self._bar.add_task("", total=None, event=None, at=0.0)
        self._title = ""

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, event: Progress) -> None:
        if event.note:
            self._bar.console.print(event.note, markup=False, highlight=False)
            return
        if event.stage == Phase.FINISHED:
            return
        fraction = _fraction(event)
        total = None if fraction is None else 1.0  # without one the bar moves to and fro
        fields: dict[str, Any] = {"event": event, "at": time.perf_counter(), "description": event.title}
        self._bar.update(
            self._task, completed=fraction or 0.0, total=total, refresh=event.title != self._title, **fields
        )
        self._title = event.title


def _describe_now(event: Progress, at: float) -> str:
    """The event as of now, which happened `at`: the time left shrinks, that of a phase that counts nothing grows."""
    passed = time.perf_counter() - at
    if event.remaining is not None:
        event = replace(event, remaining=max(event.remaining - passed, _SOON))
    elif passed >= _SOON:
        event = replace(event, remark=", ".join(filter(None, (event.remark, format_duration(passed)))))
    return describe_progress(event, short=True)


class NotebookBar:
    """A bar in the output of a notebook's cell, replaced as the work goes on."""

    def __init__(self, display: Any, clock: Callable[[], float] = time.perf_counter) -> None:
        self._display, self._clock = display, clock
        self._handle: Any = None
        self._title: str | None = None
        self._shown = 0.0
        self._notes: list[str] = []

    def __call__(self, event: Progress) -> None:
        now = self._clock()
        if event.note:
            self._notes.append(event.note)
        elif event.title != self._title or now - self._shown >= _NOTEBOOK_SECONDS:
            self._title, self._shown = event.title, now
            text = ": ".join(filter(None, (event.title, describe_progress(event))))
            data = {"text/html": _to_html(_fraction(event), text, self._notes), "text/plain": text}
            if self._handle is None:
                self._handle = self._display.display(data, raw=True, display_id=True)
            else:
                self._handle.update(data, raw=True)


def _to_html(fraction: float | None, text: str, notes: list[str]) -> str:
    value = "" if fraction is None else f' value="{fraction:.4f}"'
    lines = "".join(f"<div>{escape(note)}</div>" for note in notes)
    return f'<div>{lines}<progress{value} max="1" style="width:20em"></progress> <span>{escape(text)}</span></div>'


def _find_notebook() -> Any:
    """`IPython.display`, if this process runs the cells of a notebook; IPython in a terminal has none."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return importlib.import_module("IPython.display")
