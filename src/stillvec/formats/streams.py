"""Files that may be compressed, opened by their ending."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from stillvec.errors import FormatError
from stillvec.files import atomic_file

_HEAD = 1 << 17  # more than one line of 4,096 numbers
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def uncompressed_name(path: Path) -> str:
    """The file name without the ending of a compression."""
    return path.stem if path.suffix.lower() in _OPENERS else path.name


@contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """The uncompressed bytes of a file; a damaged compression is a FormatError."""
    if path.is_dir():
        raise FormatError(f"{path} is a folder, and a file is wanted.")
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as stream:
            yield stream
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        raise FormatError(f"{path} is not a whole {path.suffix} file ({error}); fetch it again.") from error
    except OSError as error:
        if error.errno is None:  # how bz2 says that a file is not its own
            raise FormatError(f"{path} is not a whole {path.suffix} file ({error}); fetch it again.") from error
        raise


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a file that appears whole or not at all, compressed if its ending says so."""
    ending = path.suffix.lower()
    settings = {"compresslevel": 6} if ending == ".gz" else {}  # as gzip itself; Python's 9 takes five times longer
    with atomic_file(path) as part, _OPENERS.get(ending, open)(part, "wb", **settings) as stream:
        yield stream


@contextmanager
def reading_file(path: Path) -> Iterator[Path]:
    """A file as it lies, or its uncompressed copy while it is needed: for readers that jump about or map it."""
    if path.is_dir():
        raise FormatError(f"{path} is a folder, and a file is wanted.")
    if path.suffix.lower() not in _OPENERS:
        yield path
        return
    with reading(path) as stream, tempfile.NamedTemporaryFile(suffix=f"-{uncompressed_name(path)}") as copy:
        shutil.copyfileobj(stream, copy, _HEAD)
        copy.flush()
        yield Path(copy.name)


@contextmanager
def writing_file(path: Path) -> Iterator[Path]:
    """The same for writers; the file appears whole or not at all, compressed if its ending says so."""
    if path.suffix.lower() not in _OPENERS:
        with atomic_file(path) as part:
            yield part
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / uncompressed_name(path)
        yield plain
        with writing(path) as stream, open(plain, "rb") as written:
            shutil.copyfileobj(written, stream, _HEAD)


def first_bytes(path: Path) -> bytes:
    """Enough of a file to see what it is."""
    with reading(path) as stream:
        return stream.read(_HEAD)
