"""Two words per line, separated by a tab (words may then contain spaces) or by spaces."""

from collections.abc import Iterator
from pathlib import Path

from stillvec.lexicons.edge import Edge
from stillvec.lexicons.entry_lines import bad_entry, read_entries


def read(path: Path) -> Iterator[Edge]:
    for number, line in read_entries(path, comments="# "):
        words = [word.strip() for word in line.split("\t")] if "\t" in line else line.split()
        if len(words) != 2 or not all(words):
            raise bad_entry("two words", line, path, number)
        yield Edge(words[0], words[1])
