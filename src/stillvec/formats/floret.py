"""The n-gram table of floret: `bucket dim minn maxn hashCount hashSeed BOW EOW`, then one line per row.

The file has no words: the vector of any word is the mean of its n-grams. The vectors read from it have no words either.
"""

from pathlib import Path

import numpy as np

from stillvec.errors import FormatError, UsageError
from stillvec.files import open_bytes
from stillvec.formats.format import Format, write_error
from stillvec.formats.text_rows import MAX_DIM, iterate_lines, line_error, read_rows, write_rows
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors

_MAX_HEADER = 1 << 12  # bytes


def recognize(path: Path, head: bytes) -> bool:
    return _parse_header(head.partition(b"\n")[0]) is not None


def read(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        line = stream.readline(_MAX_HEADER)
        header = _parse_header(line)
        if header is None:
            raise line_error(path, "bucket, dim, minn, maxn, hashCount, hashSeed, BOW and EOW of floret", line)
        ngrams, dim = header
        rows = read_rows(path, iterate_lines(path, stream), dim, first_line=2, n_words=ngrams.buckets)
    wrong = next((row for row, name in enumerate(rows.words) if name != str(row)), None)
    if wrong is not None:
        raise FormatError.expected(f"row {wrong}", repr(rows.words[wrong]), path=path, line=wrong + 2)
    return WordVectors([], np.zeros((0, dim), np.float32), subwords=SubwordTable(ngrams, rows.matrix))


def write(vectors: WordVectors, path: Path) -> None:
    table = vectors.subwords
    if table is None:
        cure = "add one with stillvec refine VECTORS --oov subword"
        raise write_error(path, "floret needs a table of n-grams, and the vectors have none", cure)
    ngrams = table.ngrams
    sizes = (ngrams.buckets, table.dim, ngrams.minn, ngrams.maxn, ngrams.hash_count, ngrams.hash_seed)
    header = " ".join([*map(str, sizes), ngrams.bow, ngrams.eow]).encode() + b"\n"
    write_rows(WordVectors([str(row) for row in range(ngrams.buckets)], table.matrix), path, header)


def _parse_header(line: bytes) -> tuple[Ngrams, int] | None:
    """The n-gram settings and the dimension in a first line, else None."""
    fields = line.split()
    if len(fields) != 8 or not all(field.isdigit() and len(field) < 11 for field in fields[:6]):
        return None
    buckets, dim, minn, maxn, hash_count, seed = map(int, fields[:6])
    if not 0 < dim <= MAX_DIM:
        return None
    try:
        return Ngrams(buckets, minn, maxn, hash_count, seed, fields[6].decode(), fields[7].decode()), dim
    except (UsageError, UnicodeDecodeError):
        return None


FORMAT = Format(recognize, read, write, (".floret",))
