"""The GloVe text format: one line per word and no header (Pennington et al., 2014)."""

from collections import Counter
from itertools import chain
from pathlib import Path

from stillvec.errors import FormatError
from stillvec.files import open_bytes
from stillvec.formats import text_rows
from stillvec.formats.checks import empty_error
from stillvec.formats.format import Format
from stillvec.vectors import WordVectors

_SAMPLE = 1000  # lines that decide on the dimension


def recognize(path: Path, head: bytes) -> bool:
    lines = head.split(b"\n")
    complete = lines[:-1][:5] or lines
    return text_rows.parse_header(complete[0]) is None and all(map(text_rows.count_trailing_numbers, complete))


def read(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        blocks = text_rows.iterate_lines(path, stream)
        first = next(blocks, None)
        if first is None:
            raise empty_error(path)
        return text_rows.read_rows(path, chain([first], blocks), _find_dim(path, first), first_line=1)


def _find_dim(path: Path, lines: list[bytes]) -> int:
    """How many numbers most of the first lines end with: two for "new york 0.1 0.2" and for "1984 0.1 0.2"."""
    dim = Counter(map(text_rows.count_trailing_numbers, lines[:_SAMPLE])).most_common(1)[0][0]
    if dim == 0:
        raise text_rows.line_error(path, "a word and its numbers", lines[0])
    return dim


FORMAT = Format(recognize, read, text_rows.write_rows, (".glove",))
