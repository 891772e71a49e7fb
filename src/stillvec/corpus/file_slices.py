"""Shares of a corpus that are read apart: one after the other, they give the paragraphs that the whole gives.

Neighbouring files are a share until they are large enough; a large plain text is cut, between paragraphs, into several.
"""

from __future__ import annotations

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

SLICE_BYTES = 64 << 20  # bytes
_BETWEEN = {False: re.compile(rb"\n"), True: re.compile(rb"\n[ \t\r]*\n")}  # paragraphs; True: of wrapped lines


class FileSlice(Source):
    """Some bytes of a plain text: whole paragraphs."""

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
    """The files, or stretches of them, that are read together; they depend on nothing but the files."""
    pieces = [piece for source in sources for piece in _slice_file(source, settings)]
    found: list[list[Source]] = [[]]
    held = 0
    for piece in pieces:
        alone = isinstance(piece, FileSlice)
        if held >= SLICE_BYTES or (alone and held):
            found.append([])
            held = 0
        found[-1].append(piece)
        held += SLICE_BYTES if alone else piece.size
    return found


def _slice_file(source: Source, settings: CorpusSettings) -> list[Source]:
    if source.size < 2 * SLICE_BYTES or isinstance(source, FileSlice):
        return [source]
    opened = open_file(source.path, source.name)
    if is_compressed(source.path, CorpusError) or find_reader(opened) is not read_plain or detect_encoding(opened.head):
        return [source]
    wrapped = is_wrapped(opened, settings)
    with open(source.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        cuts = [_BETWEEN[wrapped].search(text, place) for place in range(SLICE_BYTES, len(text), SLICE_BYTES)]
        places = sorted({0, len(text), *(cut.end() for cut in cuts if cut)})
    return [FileSlice(source.path, first, end, wrapped=wrapped) for first, end in pairwise(places)]
