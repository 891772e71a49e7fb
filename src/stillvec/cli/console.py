"""Tables and notes: `rich` on a terminal, plain aligned text everywhere else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import combining, east_asian_width


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their columns; numbers stand to the right."""
    given = [*rows]
    cells = [[*map(_text, row)] for row in given]
    right = [bool(given) and all(isinstance(row[i], int | float) for row in given) for i in range(len(columns))]
    console = _console()
    if console is None:
        _plain_table(title, columns, cells, right)
        return
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text(title), title_justify="left", header_style="bold")
    for name, numeric in zip(columns, right, strict=True):
        drawn.add_column(Text(name), justify="right" if numeric else "left")
    for row in cells:
        drawn.add_row(*map(Text, row))  # Text, because a word may look like markup
    console.print(drawn)


def width() -> int:
    """Columns of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def note(text: str) -> None:
    """Print one line about what was done."""
    console = _console()
    if console is None:
        print(text)
    else:
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def _console() -> Any:
    """rich's console where there is a terminal and rich is installed, else None."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    return Console()


def _plain_table(title: str, columns: Sequence[str], cells: list[list[str]], right: list[bool]) -> None:
    widths = [max(map(_width, column)) for column in zip(columns, *cells, strict=True)]
    print(title)
    for row in [columns, *cells]:
        filled = [
            " " * (width - _width(cell)) + cell if numeric else cell + " " * (width - _width(cell))
            for cell, width, numeric in zip(row, widths, right, strict=True)
        ]
        print("  " + "  ".join(filled).rstrip())


def _text(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _width(text: str) -> int:
    """Columns a text takes on a terminal: two for a wide character, none for a combining mark."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
