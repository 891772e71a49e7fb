"""Tables and notes: `rich` on a terminal, plain aligned text everywhere else."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from unicodedata import combining, east_asian_width

from stillvec.cli.terminal_text import escape_controls
from stillvec.errors import AlreadyFinished
from stillvec.files import atomic_file
from stillvec.vectors import WordVectors

_finished: set[str] = set()  # outputs of this command that existed already


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their column names, numbers to the right; no header if all names are empty."""
    values, title = [*rows], escape_controls(title)
    cells = [[*map(_format, row)] for row in values]
    right = [bool(values) and all(isinstance(row[i], int | float) for row in values) for i in range(len(columns))]
    if not sys.stdout.isatty():
        _print_plain(title, columns, cells, right)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Text everywhere, because a word may look like markup
    grid = Table(title=Text(title), title_justify="left", header_style="bold", show_header=any(columns))
    for name, numeric in zip(columns, right, strict=True):
        grid.add_column(Text(name), justify="right" if numeric else "left")
    for row in cells:
        grid.add_row(*map(Text, row))
    Console().print(grid)


def note(text: str) -> None:
    """Print one line about what was done."""
    text = escape_controls(text)
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console

    Console().print(text, markup=False, highlight=False, soft_wrap=True)


def note_now(text: str) -> None:
    """Print one line at once, also into a pipe."""
    note(text)
    sys.stdout.flush()


def report_finished(warning: AlreadyFinished) -> None:
    """Print that a result existed and nothing was computed; `report_vectors` then prints nothing about it."""
    note(f"{warning}")
    _finished.add(os.path.realpath(warning.path or ""))


def forget_finished() -> None:
    _finished.clear()


def is_finished(path: str | os.PathLike[str]) -> bool:
    """Whether a result existed and was not computed again."""
    return os.path.realpath(path) in _finished


def report_vectors(path: str | os.PathLike[str], vectors: WordVectors, facts: str = "") -> None:
    """`Wrote PATH: 500 words x 300`, and facts about them."""
    if not is_finished(path):
        note(f"Wrote {path}: {len(vectors):,} words x {vectors.dim}{facts}")


def print_json(values: object, indent: int | None = None) -> None:
    print(escape_controls(json.dumps(values, ensure_ascii=False, indent=indent)))


def show(values: object, file: str | None, print_tables: Callable[[], object], *, indent: int | None = 1) -> None:
    """For `--json`, print only JSON; else print the tables and, for `--json FILE`, write the file."""
    if file == "-":
        print_json(values, indent)
        return
    print_tables()
    if file is not None:
        write_json(file, values)


def write_json(file: str | os.PathLike[str], values: object) -> None:
    """Write values to a file, for `--json FILE`."""
    with atomic_file(file) as part:
        part.write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", "utf-8")
    note(f"Wrote {file}")


def width() -> int:
    """Columns of the terminal; 100 if there is none."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def _print_plain(title: str, columns: Sequence[str], cells: list[list[str]], right: list[bool]) -> None:
    widths = [max(map(_display_width, column)) for column in zip(columns, *cells, strict=True)]
    print(title)
    for row in [columns, *cells] if any(columns) else cells:
        gaps = [" " * (width - _display_width(cell)) for cell, width in zip(row, widths, strict=True)]
        padded = [gap + cell if numeric else cell + gap for cell, gap, numeric in zip(row, gaps, right, strict=True)]
        print("  " + "  ".join(padded).rstrip())


def _format(value: object) -> str:
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
    return escape_controls(str(value))


def _display_width(text: str) -> int:
    """Columns a text takes on a terminal: two for a wide character, none for a combining mark."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
