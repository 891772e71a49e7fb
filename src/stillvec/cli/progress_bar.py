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
    """A listener that shows each event, for calls of the library; our warnings stand above the bar."""
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
    """Print our warnings as notes when they happen, and hide those of other libraries."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, StillvecWarning):
            warn(f"Note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", StillvecWarning)
        warnings.showwarning = show
        yield


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
