"""floret's table of n-grams (`bucket dim minn maxn hashCount hashSeed BOW EOW`, then a line a row), as spaCy takes it.

It holds no words: each word's vector, known or not, is the mean of its n-grams. What is read has no words of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stillvec.errors import FormatError, UsageError
from stillvec.files import create_bytes, open_bytes
from stillvec.formats.format import Format
from stillvec.formats.text_rows import WIDEST, blocks, read_rows, write_rows
from stillvec.formats.vector_table import check_numbers
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors

_LINE = 1 << 12  # bytes that a first line has at most


def recognize(path: Path, head: bytes) -> bool:
    return _header(head.partition(b"\n")[0]) is not None


def read(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        line = stream.readline(_LINE)
        found = _header(line)
        if found is None:
            raise FormatError(
                f"{path}:1: a floret table begins with bucket, dim, minn, maxn, hashCount, hashSeed, BOW and EOW, and "
                f"this file with {line[:60].decode(errors='replace').rstrip()!r}."
            )
        ngrams, dim = found
        rows = read_rows(path, blocks(path, stream), dim, first_line=2, announced=ngrams.buckets)
    wrong = next((row for row, name in enumerate(rows.words) if name != str(row)), None)
    if wrong is not None:
        raise FormatError(f"{path}:{wrong + 2}: row {wrong} is wanted here, and {rows.words[wrong]!r} came.")
    return WordVectors([], np.zeros((0, dim), np.float32), subwords=SubwordTable(ngrams, rows.matrix))


def write(vectors: WordVectors, path: Path) -> None:
    table = vectors.subwords
    if table is None:
        raise FormatError(
            f"{path} was not written: floret's file is a table of n-grams, and the vectors have none; make it with "
            "stillvec refine VECTORS --oov subword."
        )
    ngrams = table.ngrams
    rows = WordVectors([str(row) for row in range(ngrams.buckets)], table.matrix)
    check_numbers(rows, path, np.float32)
    sizes = (ngrams.buckets, table.dim, ngrams.minn, ngrams.maxn, ngrams.hash_count, ngrams.hash_seed)
    with create_bytes(path) as stream:
        stream.write(" ".join([*map(str, sizes), ngrams.bow, ngrams.eow]).encode() + b"\n")
        write_rows(rows, path, stream)


def _header(line: bytes) -> tuple[Ngrams, int] | None:
    """The n-grams and the numbers a row that a first line tells, else None."""
    fields = line.split()
    if len(fields) != 8 or not all(field.isdigit() and len(field) < 11 for field in fields[:6]):
        return None
    buckets, dim, minn, maxn, hash_count, seed = map(int, fields[:6])
    if not 0 < dim <= WIDEST:
        return None
    try:
        return Ngrams(buckets, minn, maxn, hash_count, seed, fields[6].decode(), fields[7].decode()), dim
    except (UsageError, UnicodeDecodeError):
        return None


FORMAT = Format(recognize, read, write, (".floret",))
