"""A word and its neighbours a line, parted by spaces: PPDB in the form of Faruqui et al. (2015).

A word that stands alone has no neighbours, and that is lawful. There are no comments: `#` is a word of PPDB.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stillvec.corpus.definitions import numbered_lines
from stillvec.lexicons.edge import Edge


def read(path: Path) -> Iterator[Edge]:
    for _, line in numbered_lines(path, comments=()):
        word, *neighbours = line.split()
        for neighbour in neighbours:
            yield Edge(word, neighbour)
