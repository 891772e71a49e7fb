"""Progress on standard error: a bar on a terminal, a line every few seconds elsewhere."""

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from stillvec.cli.terminal_text import warn
from stillvec.errors import StillvecWarning
from stillvec.progress import Listener, Progress, ProgressBar, describe_progress

_INTERVAL = 10.0  # seconds between plain lines


def watch(events: Iterable[object], *, quiet: bool = False) -> None:
    """Run the work to its end and show how far it is."""
    with show_events(quiet=quiet) as listener:
        for event in events:
            if isinstance(event, Progress):
                listener(event)


@contextmanager
def show_events(*, quiet: bool = False) -> Iterator[Listener]:
    """A listener that shows each event, for calls of the library; warnings are printed at the end."""
    with show_warnings():
        if quiet:
            yield lambda event: None
        elif sys.stderr.isatty():
            with ProgressBar() as bar:
                yield bar
        else:
            yield _LinePrinter()


@contextmanager
def show_warnings() -> Iterator[None]:
    """Print our warnings as notes at the end, and hide those of other libraries."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StillvecWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, StillvecWarning):
            warn(f"Note: {warning.message}")


class _LinePrinter:
    """A line at the start of each stage and every few seconds."""

    def __init__(self) -> None:
        self._stage: str | None = None
        self._printed = 0.0

    def __call__(self, event: Progress) -> None:
        now = time.perf_counter()
        if event.stage != self._stage or now - self._printed > _INTERVAL:
            detail = describe_progress(event)
            warn(f"{event.stage}: {detail}" if detail else event.stage)
            self._stage, self._printed = event.stage, now
