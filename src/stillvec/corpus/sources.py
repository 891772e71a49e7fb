"""The sources of a corpus: files, slices of files, folders, globs, and pipes, which are copied to be read again."""

from __future__ import annotations

import glob
import io
import mmap
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

from stillvec.corpus.conllu import read_conllu
from stillvec.corpus.html_text import is_html, read_html
from stillvec.corpus.markdown_text import read_markdown
from stillvec.corpus.pdf_text import is_pdf, read_pdf
from stillvec.corpus.plain_text import is_wrapped, read_plain
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats, open_file, text_suffix
from stillvec.corpus.records import is_json_lines, read_json_lines, read_parquet
from stillvec.corpus.wikipedia import is_wikipedia, read_wikipedia
from stillvec.corpus.zipped_text import read_docx, read_epub
from stillvec.errors import CorpusError, UsageError
from stillvec.files import check_is_text, copy_temporary, detect_encoding, is_compressed, unreadable
from stillvec.files.path_names import show_path
from stillvec.files.temporary_names import name_machine, temporary_name
from stillvec.registry import require_all

STANDARD_INPUT = "-"
SLICE_BYTES = 64 << 20
_BREAKS = {False: re.compile(rb"\n"), True: re.compile(rb"\n[ \t\r]*\n")}  # of paragraphs; True: of hard-wrapped lines


Reader = Callable[[OpenedFile, CorpusSettings, ReadStats], Iterator[str]]


class FileType(NamedTuple):
    """Recognized by its suffixes, else by the first bytes."""

    suffixes: tuple[str, ...]
    read: Reader
    matches_head: Callable[[bytes], bool] = lambda head: False


FILE_TYPES = (
    FileType((".parquet", ".pq"), read_parquet, lambda head: head.startswith(b"PAR1")),
    FileType((".xml",), read_wikipedia, is_wikipedia),
    FileType((".jsonl", ".json", ".ndjson"), read_json_lines, is_json_lines),
    FileType((".conllu",), read_conllu),
    FileType((".md", ".markdown"), read_markdown),
    FileType((".html", ".htm", ".xhtml"), read_html, is_html),
    FileType((".pdf",), read_pdf, is_pdf),
    FileType((".docx",), read_docx),
    FileType((".epub",), read_epub),
    FileType((".txt", ".text", ".rst", ".raw", ".tokens"), read_plain),
)
_BY_SUFFIX = {suffix: file_type.read for file_type in FILE_TYPES for suffix in file_type.suffixes}
_MARKUP = (read_markdown, read_html)  # read as they are with `plain`
DOCUMENTS = (*_MARKUP, read_pdf, read_docx, read_epub)  # a file is one document, which is converted to text once
_BINARY = (read_parquet, read_pdf, read_docx, read_epub)
_PACKAGES = {read_pdf: ("pypdf", "pdf")}  # and their extras


class Source:
    """A file of a corpus and its name for the user."""

    def __init__(self, path: Path) -> None:
        self.name = show_path(path)
        self.path = path
        self._state: tuple[str, int, int, int] | None = None  # machine, size, time and inode
        self._text: Path | None = None  # of a document, a paragraph per line, from the first pass on

    def watch(self) -> None:
        """Remember the state of the file: reading another one is then an error."""
        self._state = self._get_state()

    def watch_like(self, other: Source) -> Source:
        """Expect the state that another source of the same file remembers."""
        self._state = other._state
        return self

    def check_unchanged(self) -> None:
        """Raise an error if the file changed since `watch`; on another machine it may be a copy of the same size."""
        if self._state is None:
            return
        state = self._get_state()
        same = state == self._state if state[0] == self._state[0] else state[1] == self._state[1]
        if not same:
            raise CorpusError.from_change(self.name)

    def _get_state(self) -> tuple[str, int, int, int]:
        try:
            state = self.path.stat()
        except OSError as error:
            raise unreadable(error, self.name, CorpusError) from None
        return name_machine(), state.st_size, state.st_mtime_ns, state.st_ino

    @property
    def size(self) -> int:
        """In bytes."""
        try:
            return self.open_path().stat().st_size
        except OSError as error:
            raise unreadable(error, self.name, CorpusError) from None

    @property
    def is_plain(self) -> bool:
        """Whether its name says that it is text, not compressed."""
        return _BY_SUFFIX.get(self.path.suffix.lower()) is read_plain

    def read(self, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
        """Yield its paragraphs."""
        self.check_unchanged()
        yield from self._read(settings, stats)
        self.check_unchanged()

    def _read(self, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
        if self._text is not None and self._text.exists() and not settings.plain:
            return _read_lines(self._text)
        opened = open_file(self.open_path(), self.name)
        reader = find_reader(opened, plain=settings.plain)
        paragraphs = reader(opened, settings, stats)
        return self._keep_text(paragraphs) if reader in DOCUMENTS else paragraphs

    def _keep_text(self, paragraphs: Iterator[str]) -> Iterator[str]:
        """Write the paragraphs to a file that is deleted with the corpus, since converting documents is slow."""
        text = temporary_name(Path(tempfile.gettempdir()) / "stillvec", "tmp")
        weakref.finalize(self, text.unlink, missing_ok=True)
        with os.fdopen(os.open(text, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            for paragraph in paragraphs:
                copy_temporary(io.BytesIO(paragraph.encode() + b"\n"), file, self.name, CorpusError)
                yield paragraph
        self._text = text

    def open_path(self) -> Path:
        return self.path

    def close(self) -> None:
        """Delete the text of a document."""
        if self._text is not None:
            self._text.unlink(missing_ok=True)
            self._text = None


class Pipe(Source):
    """Standard input or a named pipe, copied when first read to a file that is deleted with the corpus."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path or Path(STANDARD_INPUT))
        self.name = show_path(path) if path else "standard input"
        self._stream = path
        self._copy: Path | None = None

    def watch(self) -> None:
        """The copy does not change."""

    def open_path(self) -> Path:
        if self._copy is None:
            self._copy = temporary_name(Path(tempfile.gettempdir()) / "stillvec", "tmp")
            handle = os.open(self._copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            weakref.finalize(self, self._copy.unlink, missing_ok=True)
            pipe = self._stream.open("rb") if self._stream else nullcontext(sys.stdin.buffer)
            with os.fdopen(handle, "wb") as copy, pipe as stream:
                copy_temporary(stream, copy, self.name, CorpusError)
        return self._copy

    def close(self) -> None:
        super().close()
        if self._copy is not None:
            self._copy.unlink(missing_ok=True)


class FileSlice(Source):
    """A byte range of a plain text file that contains whole paragraphs."""

    def __init__(self, path: Path, first: int, end: int, *, wrapped: bool) -> None:
        super().__init__(path)
        self._first, self._end, self._wrapped = first, end, wrapped

    @property
    def size(self) -> int:
        return self._end - self._first

    def _read(self, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
        opened = open_file(self.path, self.name, (self._first, self._end))
        return read_plain(opened, replace(settings, paragraphs="blocks" if self._wrapped else "lines"), stats)


def _read_lines(path: Path) -> Iterator[str]:
    with open(path, "rb") as file:
        for line in file:
            yield line.decode().removesuffix("\n")


def check_packages(sources: Iterable[Source]) -> None:
    """Raise an error before the work if a package that reads one of the files is missing."""
    readers = {_BY_SUFFIX.get(text_suffix(source.path)) for source in sources}
    needed = dict(_PACKAGES[reader] for reader in _PACKAGES if reader in readers)
    require_all(needed, "Reading PDF")


def resolve(sources: Iterable[str | os.PathLike[str]], more_suffixes: Collection[str] = ()) -> list[Source]:
    """Every file once, in the order given; files of a folder or glob are sorted.

    `more_suffixes` are those of files that are read in a folder besides the types of a corpus.
    """
    names = [os.path.expanduser(os.fspath(source)) for source in sources]
    if not names:
        raise UsageError("A corpus needs at least one file, folder, glob or '-' (standard input).")
    files: dict[str, Source] = {}
    for name in names:
        for source in _resolve_one(name, more_suffixes):
            files.setdefault(source.name if isinstance(source, Pipe) else os.path.realpath(source.path), source)
    return list(files.values())


def is_file_name(text: str) -> bool:
    """Whether a string names a file, folder or glob, even if there is none, and is not a text itself."""
    if os.path.exists(os.path.expanduser(text)) or text_suffix(Path(text.strip())) in _BY_SUFFIX:
        return True
    return "\n" not in text and glob.has_magic(text) and any(glob.iglob(text, recursive=True))


def _resolve_one(name: str, more_suffixes: Collection[str]) -> Iterator[Source]:
    path = Path(name)
    if not name:
        raise UsageError.expected("a file, folder or glob", "an empty name", where="corpus")
    if name != STANDARD_INPUT and not os.path.exists(name) and not is_file_name(name) and len(name.split()) > 1:
        cure = "give texts as a list, or as stillvec.Corpus.from_texts(texts)"
        raise CorpusError.not_found(shorten(name, 60, placeholder=" ..."), "a corpus", cure=cure)
    if name == STANDARD_INPUT:
        yield Pipe()
    elif os.path.isdir(name):
        yield from _list_folder(path, more_suffixes)
    elif os.path.exists(name):
        if path.is_char_device() or path.is_block_device():
            raise CorpusError.expected("text", "a device", path=name, code="not-a-file")
        yield Source(path) if path.is_file() else Pipe(path)
    elif glob.has_magic(name):
        yield from _expand_glob(name)
    else:
        raise CorpusError.not_found(name, "a corpus", cure=_explain_missing(path))


def _explain_missing(path: Path) -> str:
    """Which part of the path exists, which shows most typing errors."""
    folder = next((parent for parent in path.parents if parent.is_dir()), path.parent)
    missing = path.relative_to(folder).parts[0]
    return "check the path" if folder == path.parent else f"{folder} exists, but {missing} in it does not"


def _list_folder(folder: Path, more_suffixes: Collection[str]) -> Iterator[Source]:
    files = sorted(_walk(folder, {*_BY_SUFFIX, *more_suffixes}))
    if not files:
        what = "text files (.txt, .md, .html, .pdf, .docx, .epub, .jsonl, .parquet, .conllu, .xml, also as .gz, .xz)"
        cure = "name other files one by one or with a glob"
        raise CorpusError.expected(what, "none", path=folder, cure=cure, code="no-files")
    yield from map(Source, files)


def _walk(folder: Path, suffixes: Collection[str]) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise unreadable(error, str(error.filename), CorpusError) from None

    for place, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(place, name) for name in files if not name.startswith("."))
        for path in paths:
            suffix = text_suffix(path)
            if (suffix in suffixes or (not suffix and path.suffix)) and path.is_file():
                yield path


def _expand_glob(pattern: str) -> Iterator[Source]:
    files = [path for name in sorted(glob.glob(pattern, recursive=True)) if (path := Path(name)).is_file()]
    if not files:
        message = f"No file matches {pattern} (working directory: {Path.cwd()})."
        raise CorpusError(message, code="no-files", path=pattern)
    yield from map(Source, files)


def split_sources(sources: Sequence[Source], settings: CorpusSettings) -> list[list[Source]]:
    """Groups of small neighbouring files, and slices of large files between paragraphs; in order, the whole corpus."""
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
    if (
        is_compressed(source.path, CorpusError)
        or find_reader(opened, plain=settings.plain) is not read_plain
        or detect_encoding(opened.head)
    ):
        return [source]
    wrapped = is_wrapped(opened, settings)
    with open(source.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        cuts = [_BREAKS[wrapped].search(text, start) for start in range(SLICE_BYTES, len(text), SLICE_BYTES)]
        bounds = sorted({0, len(text), *(cut.end() for cut in cuts if cut)})
    slices = (FileSlice(source.path, first, end, wrapped=wrapped) for first, end in pairwise(bounds))
    return [piece.watch_like(source) for piece in slices]


def is_document(source: Source) -> bool:
    """Whether a file is converted to text, by its suffix or, if that says nothing, its first bytes."""
    by_suffix = _BY_SUFFIX.get(text_suffix(source.path))
    return (by_suffix or find_reader(open_file(source.open_path(), source.name))) in DOCUMENTS


def find_reader(opened: OpenedFile, *, plain: bool = False) -> Reader:
    """The reader of a file; a file that is not text raises an error. With `plain`, markup is read as it is."""
    by_head = (file_type.read for file_type in FILE_TYPES if file_type.matches_head(opened.head))
    reader = _BY_SUFFIX.get(text_suffix(opened.path)) or next(by_head, read_plain)
    if plain and reader in _MARKUP:
        reader = read_plain
    if reader not in _BINARY:
        check_is_text(opened.head, opened.name, CorpusError)
    return reader
