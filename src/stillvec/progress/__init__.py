"""Progress of long work: events, one scale over all phases of a run, and how they are shown."""

from stillvec.progress.display import LinePrinter, ProgressBar, describe_progress, show_progress
from stillvec.progress.events import Listener, Progress, drain, format_bytes, format_duration, relay
from stillvec.progress.phases import Phase
from stillvec.progress.timeline import Timeline

__all__ = [
    "LinePrinter",
    "Listener",
    "Phase",
    "Progress",
    "ProgressBar",
    "Timeline",
    "describe_progress",
    "drain",
    "format_bytes",
    "format_duration",
    "relay",
    "show_progress",
]
