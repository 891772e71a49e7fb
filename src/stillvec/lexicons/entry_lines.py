"""Lines of lexicons, and the error for one that cannot be read."""

from collections.abc import Iterator
from pathlib import Path

from stillvec.errors import LexiconError
from stillvec.files import read_lines


def read_entries(path: Path, comments: str | tuple[str, ...] = "#") -> Iterator[tuple[int, str]]:
    """(number, stripped line) of the lines that are neither blank nor begin with one of `comments`."""
    for number, line in read_lines(path, LexiconError):
        if line.strip() and not line.startswith(comments):
            yield number, line.strip()


def bad_entry(expected: str, line: str, path: Path, number: int, cure: str = "correct the line") -> LexiconError:
    return LexiconError.expected(expected, repr(line[:40]), path=path, line=number, cure=cure, code="bad-line")
