"""word2vec's text: a line "words dim", then one line a word (Mikolov et al., 2013; `-binary 0`)."""

from __future__ import annotations

from pathlib import Path

from stillvec.errors import FormatError
from stillvec.files import create_bytes, open_bytes
from stillvec.formats.format import Format
from stillvec.formats.text_rows import (
    blocks,
    check_text,
    count_trailing_numbers,
    header,
    read_header,
    read_rows,
    write_rows,
)
from stillvec.vectors import WordVectors


def recognize(path: Path, head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    found = header(first)
    if found is None:
        return False
    line, end, _ = rest.partition(b"\n")
    if not end:  # the head may stop within a line, and within a number
        line = line.rpartition(b" ")[0] if len(rest) > 1 << 16 else line
    return found[0] == 0 or count_trailing_numbers(line) > 0


def read(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        words, dim = read_header(path, stream)
        return read_rows(path, blocks(path, stream), dim, first_line=2, announced=words)


def write(vectors: WordVectors, path: Path) -> None:
    check_text(vectors, path, whole_numbers=False)
    with create_bytes(path) as stream:
        stream.write(b"%d %d\n" % (len(vectors), vectors.dim))
        write_rows(vectors, path, stream)


FORMAT = Format(recognize, read, write, (".w2v",))
