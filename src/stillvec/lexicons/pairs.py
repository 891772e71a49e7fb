"""Two words a line, parted by a tab (words may then hold spaces) or by spaces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stillvec.corpus.definitions import numbered_lines
from stillvec.errors import LexiconError
from stillvec.lexicons.edge import Edge


def read(path: Path) -> Iterator[Edge]:
    for number, line in numbered_lines(path, comments="# "):
        words = [word.strip() for word in line.split("\t")] if "\t" in line else line.split()
        if len(words) != 2 or not all(words):
            raise LexiconError(f"Two words were wanted in {path}:{number}, and {line[:40]!r} came; correct the line.")
        yield Edge(words[0], words[1])
