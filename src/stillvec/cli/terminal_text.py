"""Text for a terminal. Words and file names may contain escape sequences, which would control it."""

import re
import sys

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # C0, C1, changes of direction


def escape_controls(text: str) -> str:
    """Write control characters, except line breaks and tabs, as JSON does."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def warn(text: str) -> None:
    """Print one line on standard error."""
    print(escape_controls(text), file=sys.stderr, flush=True)
