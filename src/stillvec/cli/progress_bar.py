"""Progress on standard error: a bar on a terminal, a line every few seconds elsewhere."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from stillvec.cli.console import note, report_finished
from stillvec.cli.process_clock import read_clock
from stillvec.cli.terminal_text import warn
from stillvec.errors import AlreadyFinished, StillvecWarning
from stillvec.progress import LinePrinter, Listener, Phase, Progress, ProgressBar


class EventRecorder:
    """Gives events to a display, and keeps the last one."""

    def __init__(self, display: Listener) -> None:
        self._display = display
        self._last: Progress | None = None
        self._seconds = 0.0  # since the command started, at that time

    def __call__(self, event: Progress) -> None:
        if event.stage == Phase.FINISHED:
            self._last, self._seconds = event, read_clock()
        self._display(event)

    def print_time(self) -> None:
        """One line: where the time went, from the start of the command on."""
        if self._last is None:
            return
        imports = self._seconds - self._last.seconds
        note(f"Took {self._seconds:,.1f} s: imports {imports:.1f}, {self._last.remark} s.")


@contextmanager
def show_events(*, quiet: bool = False) -> Iterator[EventRecorder]:
    """A listener that shows each event, for calls of the library; our warnings stand above the bar."""
    with show_warnings():
        if quiet or os.environ.get("RANK", "0") != "0":  # of several processes, one shows the progress
            yield EventRecorder(lambda event: None)
        elif sys.stderr.isatty():
            with ProgressBar() as bar:
                yield EventRecorder(bar)
        else:
            yield EventRecorder(LinePrinter(warn))


@contextmanager
def show_warnings() -> Iterator[None]:
    """Print our warnings as notes when they happen, and hide those of other libraries."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if isinstance(message, AlreadyFinished):
            report_finished(message)
        elif issubclass(category, StillvecWarning):
            warn(f"Note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", StillvecWarning)
        warnings.showwarning = show
        yield
