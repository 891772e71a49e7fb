"""The word2vec text format: a line "words dim", then one line per word (Mikolov et al., 2013; `-binary 0`).

fastText's `.vec` is the same format under another suffix (Bojanowski et al., 2017).
"""

from pathlib import Path

from stillvec.errors import FormatError
from stillvec.files import inner_suffix, open_bytes
from stillvec.formats import text_rows
from stillvec.formats.format import Format
from stillvec.vectors import WordVectors


def recognize(path: Path, head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    header = text_rows.parse_header(first)
    if header is None:
        return False
    line, end, _ = rest.partition(b"\n")
    if not end:  # the head may end within a line, and within a number
        line = line.rpartition(b" ")[0] if len(rest) > 1 << 16 else line
    return header[0] == 0 or text_rows.count_trailing_numbers(line) > 0


def recognize_fasttext(path: Path, head: bytes) -> bool:
    return inner_suffix(path) == ".vec" and recognize(path, head)


def read(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        n_words, dim = text_rows.read_header(path, stream)
        return text_rows.read_rows(path, text_rows.iterate_lines(path, stream), dim, first_line=2, n_words=n_words)


def write(vectors: WordVectors, path: Path) -> None:
    text_rows.write_rows(vectors, path, b"%d %d\n" % (len(vectors), vectors.dim))


FORMAT = Format(recognize, read, write, (".w2v",))
FASTTEXT = Format(recognize_fasttext, read, write, (".vec",))
