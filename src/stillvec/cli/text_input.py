"""Texts given to a command: as arguments, in files with a text per line or a column of texts, or on standard input."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from stillvec.errors import CorpusError, UsageError
from stillvec.files import decode_lines, inner_suffix
from stillvec.heads.dataset_files import read_texts

TEXTS_HELP = "texts; files with a text per line, or tables (.csv, .tsv, .jsonl); or - (standard input, the default)"
FIELD_HELP = "the column that has the text (default: text)"
_FILE_ENDINGS = (".txt", ".tsv", ".csv", ".jsonl", ".text")
_LONGEST_PATH = 4096


def read_text_arguments(given: Sequence[str], field: str = "text") -> Iterator[str]:
    """The texts of the arguments of a command; without any, those of standard input."""
    for text in given or ["-"]:
        path, is_name = Path(text), not any(map(str.isspace, text))
        if text == "-":
            yield from decode_lines(sys.stdin.buffer, Path("standard input"), CorpusError)
        elif inner_suffix(path) == ".json" and is_name:
            raise UsageError.expected("texts, or a file with a text per line", repr(text))
        elif "\0" not in text and len(text) < _LONGEST_PATH and path.is_file():
            yield from read_texts(path, field)
        elif is_name and inner_suffix(path) in _FILE_ENDINGS:
            raise UsageError.not_found(path, "a file with a text per line")
        else:
            yield text
