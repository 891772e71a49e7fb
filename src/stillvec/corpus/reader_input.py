"""What the readers of a corpus receive: a file, the settings, and the counts of the pass so far."""

import itertools
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stillvec.errors import CorpusError, StillvecWarning
from stillvec.files import inner_suffix, open_bytes

ParagraphMode = Literal["auto", "lines", "blocks"]
CHUNK_BYTES = 1 << 18
HEAD_BYTES = 1 << 16  # to recognize the type of a file by


@dataclass(frozen=True)
class CorpusSettings:
    field: str | None = None  # of JSON lines and Parquet; default: "text"
    paragraphs: ParagraphMode = "auto"
    strict: bool = False  # raise an error for bytes that are not UTF-8
    min_sentences: int = 1  # of a paragraph, or it is dropped
    min_characters: int = 0  # of a paragraph, or it is dropped
    plain: bool = False  # read Markdown and HTML with their markup


@dataclass
class ReadStats:
    """Counts of one pass over a corpus so far."""

    strict: bool = False
    n_replaced: int = 0  # bytes that are not UTF-8
    first_replaced: str = ""  # where the first of them is
    n_files: int = 0
    n_paragraphs: int = 0
    n_characters: int = 0

    def add_replaced(self, n_bytes: int, name: str, line: int, byte: int) -> None:
        """Count bytes that are not valid text; raise an error if `strict`."""
        if self.strict:
            got = f"another encoding at byte {byte:,}"
            cure = "convert the file (iconv -f latin1 -t utf8), or read it without strict"
            raise CorpusError.expected("UTF-8", got, path=name, line=line, cure=cure, code="encoding")
        self.n_replaced += n_bytes
        self.first_replaced = self.first_replaced or f"{name}, line {line:,}, byte {byte:,}"

    def warn_replaced(self) -> None:
        """Tell the user how many bytes were not valid text."""
        problem = f"{self.n_replaced:,} bytes are not UTF-8 and were read as U+FFFD"
        cure = "if these are too many, convert the text (iconv -f latin1 -t utf8)"
        warnings.warn(f"{problem} (the first in {self.first_replaced}); {cure}.", StillvecWarning, stacklevel=4)


@dataclass(frozen=True)
class OpenedFile:
    path: Path
    name: str  # as the user wrote it
    head: bytes
    chunks: Iterator[bytes]  # from the beginning, head included


def open_file(path: Path, name: str, between: tuple[int, int] = (0, sys.maxsize)) -> OpenedFile:
    """Open a file, or the bytes from one position to another of an uncompressed one."""
    chunks = _read_chunks(path, name, *between)
    first: list[bytes] = []
    for chunk in chunks:
        first.append(chunk)
        if sum(map(len, first)) >= HEAD_BYTES:
            break
    return OpenedFile(path, name, b"".join(first)[:HEAD_BYTES], itertools.chain(first, chunks))


def text_suffix(path: Path) -> str:
    """The suffix that names the type of a file: `.jsonl` for `a.jsonl.gz`, `.xml` for `a.xml-p1p41242.bz2`."""
    return inner_suffix(path).partition("-")[0]


def _read_chunks(path: Path, name: str, first: int, end: int) -> Iterator[bytes]:
    with open_bytes(path, CorpusError, name=name) as stream:
        if first:
            stream.seek(first)
        left = end - first
        while chunk := stream.read(min(CHUNK_BYTES, left)):
            left -= len(chunk)
            yield chunk
