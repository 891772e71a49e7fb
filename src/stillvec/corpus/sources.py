"""The sources of a corpus: files, folders, globs, and pipes, which are copied so they can be read again."""

import glob
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from stillvec.corpus.file_types import is_known, read
from stillvec.corpus.opened_file import open_file
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.errors import CorpusError, UsageError
from stillvec.files import unreadable

STANDARD_INPUT = "-"


class Source:
    """A file of a corpus and its name for the user."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.path = path

    @property
    def size(self) -> int:
        """In bytes."""
        try:
            return self.open_path().stat().st_size
        except OSError as error:
            raise unreadable(error, self.name, CorpusError) from None

    def read(self, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
        """Yield its paragraphs."""
        return read(open_file(self.open_path(), self.name), settings, stats)

    def open_path(self) -> Path:
        return self.path

    def close(self) -> None:
        """Files need no clean-up."""


class Pipe(Source):
    """Standard input or a named pipe, copied when first read to a file that is deleted with the corpus."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path or Path(STANDARD_INPUT))
        self.name = str(path) if path else "standard input"
        self._stream = path
        self._copy: Path | None = None

    def open_path(self) -> Path:
        if self._copy is None:
            handle, name = tempfile.mkstemp(prefix="stillvec-", suffix=".spool")
            self._copy = Path(name)
            weakref.finalize(self, self._copy.unlink, missing_ok=True)
            with os.fdopen(handle, "wb") as copy, self._open_stream() as stream:
                shutil.copyfileobj(stream, copy, 1 << 20)
        return self._copy

    def _open_stream(self) -> AbstractContextManager[BinaryIO]:
        return open(self._stream, "rb") if self._stream else nullcontext(sys.stdin.buffer)

    def close(self) -> None:
        if self._copy is not None:
            self._copy.unlink(missing_ok=True)


def resolve(sources: Iterable[str | os.PathLike[str]]) -> list[Source]:
    """Every file once, in the order given; files of a folder or glob are sorted."""
    names = [os.path.expanduser(os.fspath(source)) for source in sources]
    if not names:
        raise UsageError("A corpus needs at least one file, folder, glob or '-' (standard input).")
    files: dict[str, Source] = {}
    for name in names:
        for source in _resolve_one(name):
            files.setdefault(source.name if isinstance(source, Pipe) else os.path.realpath(source.path), source)
    return list(files.values())


def _resolve_one(name: str) -> Iterator[Source]:
    path = Path(name)
    if name == STANDARD_INPUT:
        yield Pipe()
    elif path.is_dir():
        yield from _list_folder(path)
    elif path.exists():
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


def _list_folder(folder: Path) -> Iterator[Source]:
    files = sorted(_walk(folder))
    if not files:
        raise CorpusError.expected(
            "text files (.txt, .jsonl, .parquet, .conllu, .xml, also as .gz, .bz2, .xz, .zst)",
            "none",
            path=folder,
            cure="name other files one by one or with a glob",
            code="no-files",
        )
    yield from map(Source, files)


def _walk(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise unreadable(error, str(error.filename), CorpusError) from None

    for place, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(place, name) for name in files if not name.startswith("."))
        yield from (path for path in paths if is_known(path) and path.is_file())


def _expand_glob(pattern: str) -> Iterator[Source]:
    paths = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
    files = [path for path in paths if path.is_file()]
    if not files:
        raise CorpusError(
            f"No file matches {pattern} (working directory: {Path.cwd()}).", code="no-files", path=pattern
        )
    yield from map(Source, files)
