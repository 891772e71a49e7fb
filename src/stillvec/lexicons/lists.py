"""A word and its neighbours per line, separated by spaces: PPDB as distributed by Faruqui et al. (2015).

A word may have no neighbours. There are no comments: `#` is a word of PPDB.
"""

from collections.abc import Iterator
from pathlib import Path

from stillvec.lexicons.edge import Edge
from stillvec.lexicons.entry_lines import read_entries


def read(path: Path) -> Iterator[Edge]:
    for _, line in read_entries(path, comments=()):
        word, *neighbours = line.split()
        for neighbour in neighbours:
            yield Edge(word, neighbour)
