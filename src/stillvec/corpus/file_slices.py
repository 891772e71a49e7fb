"""Splits a corpus into parts that can be read in parallel; together they give the paragraphs of the whole, in order.

Small neighbouring files are grouped; a large plain text file is cut between paragraphs.
"""

import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from stillvec.corpus.file_types import find_reader
from stillvec.corpus.opened_file import open_file
from stillvec.corpus.plain_text import is_wrapped, read_plain
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.corpus.sources import Source
from stillvec.errors import CorpusError
from stillvec.files import detect_encoding, is_compressed

SLICE_BYTES = 64 << 20
_BREAKS = {
    False: re.compile(rb"\n"),
    True: re.compile(rb"\n[ \t\r]*\n"),
}  # between paragraphs; True: of hard-wrapped lines


class FileSlice(Source):
    """A byte range of a plain text file that contains whole paragraphs."""

    def __init__(self, path: Path, first: int, end: int, *, wrapped: bool) -> None:
        super().__init__(path)
        self._first, self._end, self._wrapped = first, end, wrapped

    @property
    def size(self) -> int:
        return self._end - self._first

    def read(self, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
        opened = open_file(self.path, self.name, (self._first, self._end))
        return read_plain(opened, replace(settings, paragraphs="blocks" if self._wrapped else "lines"), stats)


def split_sources(sources: Sequence[Source], settings: CorpusSettings) -> list[list[Source]]:
    """Groups of files or file slices that are read together; they depend only on the files."""
    pieces = [piece for source in sources for piece in _slice_file(source, settings)]
    groups: list[list[Source]] = [[]]
    n_bytes = 0
    for piece in pieces:
        alone = isinstance(piece, FileSlice)
        if n_bytes >= SLICE_BYTES or (alone and n_bytes):
            groups.append([])
            n_bytes = 0
        groups[-1].append(piece)
        n_bytes += SLICE_BYTES if alone else piece.size
    return groups


def _slice_file(source: Source, settings: CorpusSettings) -> list[Source]:
    if source.size < 2 * SLICE_BYTES or isinstance(source, FileSlice):
        return [source]
    opened = open_file(source.path, source.name)
    if is_compressed(source.path, CorpusError) or find_reader(opened) is not read_plain or detect_encoding(opened.head):
        return [source]
    wrapped = is_wrapped(opened, settings)
    with open(source.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        cuts = [_BREAKS[wrapped].search(text, start) for start in range(SLICE_BYTES, len(text), SLICE_BYTES)]
        bounds = sorted({0, len(text), *(cut.end() for cut in cuts if cut)})
    return [FileSlice(source.path, first, end, wrapped=wrapped) for first, end in pairwise(bounds)]
