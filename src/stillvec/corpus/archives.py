"""The bytes of a file, unpacked if it is compressed; a damaged archive is named."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from stillvec.errors import CorpusError
from stillvec.registry import require

CHUNK = 1 << 18  # bytes at a time
HEAD = 1 << 16  # bytes that are looked at to tell what a file is


@dataclass(frozen=True)
class Compression:
    """One way of packing: what the name ends with, how the bytes begin, how they are unpacked."""

    suffix: str
    magic: bytes
    unpack: Callable[[Path], Iterator[bytes]]


@dataclass(frozen=True)
class Opened:
    """A file as readers get it: its bytes, unpacked, and the first of them to look at."""

    path: Path
    name: str  # as the user knows it
    head: bytes
    chunks: Iterator[bytes]  # from the beginning, head included
    packed: bool = False


def open_file(path: Path, name: str, between: tuple[int, int] | None = None) -> Opened:
    """Open a file, unpacked by what it is, not by what it is called; or some bytes of one that is not packed."""
    compression = _compression_of(path, name)
    chunks = _named_errors(compression.unpack(path) if compression else _plain(path, between), name)
    first: list[bytes] = []
    for chunk in chunks:
        first.append(chunk)
        if sum(map(len, first)) >= HEAD:
            break
    return Opened(path, name, b"".join(first)[:HEAD], itertools.chain(first, chunks), compression is not None)


def inner_suffix(path: Path) -> str:
    """The suffix below the compression's: `.jsonl` for `a.jsonl.gz`, `.xml` for `a.xml-p1p41242.bz2`."""
    name = path.with_suffix("") if path.suffix.lower() in _BY_SUFFIX else path
    return name.suffix.lower().partition("-")[0]


def _compression_of(path: Path, name: str) -> Compression | None:
    try:
        with open(path, "rb") as stream:
            start = stream.read(8)
    except OSError as error:
        raise unreadable(name, error) from None
    for compression in _COMPRESSIONS:
        if start.startswith(compression.magic):
            return compression
    called = _BY_SUFFIX.get(path.suffix.lower())
    if called:
        raise CorpusError(
            f"{name} is called {called.suffix} but does not begin like one (it begins with {start[:4]!r}); "
            "it may be cut short or already unpacked: download it again, or rename it."
        )
    return None


def unreadable(name: str, error: OSError) -> CorpusError:
    """An operating system's refusal as one sentence with its cure."""
    cures = {
        FileNotFoundError: "There is no file",
        PermissionError: "No permission to read",
        IsADirectoryError: "A folder came where a file was wanted:",
    }
    start = cures.get(type(error))
    if start is None:
        return CorpusError(f"{name} cannot be read ({error.strerror or error}).")
    return CorpusError(f"{start} {name}; check the path and its permissions (ls -l).")


def _named_errors(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The same chunks; what goes wrong on the way is told with the file's name."""
    done = 0
    while True:
        try:
            chunk = next(chunks, b"")
        except OSError as error:
            if error.errno is not None:
                raise unreadable(name, error) from None
            raise _damaged(name, done, error) from None
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise _damaged(name, done, error) from None
        if not chunk:
            return
        done += len(chunk)
        yield chunk


def _damaged(name: str, done: int, error: Exception) -> CorpusError:
    what = str(error).strip().rstrip(".") or type(error).__name__
    return CorpusError(
        f"The archive {name} is damaged or cut short after {done:,} unpacked bytes ({what}); copy or download it again."
    )


def _plain(path: Path, between: tuple[int, int] | None = None) -> Iterator[bytes]:
    with open(path, "rb", buffering=0) as stream:
        first, end = between or (0, sys.maxsize)
        stream.seek(first)
        while chunk := stream.read(min(CHUNK, end - stream.tell())):
            yield chunk


def _unpacker(
    open_packed: Callable[[Path], gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile],
) -> Callable[[Path], Iterator[bytes]]:
    def unpack(path: Path) -> Iterator[bytes]:
        with closing(open_packed(path)) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk

    return unpack


def _unpack_zstd(path: Path) -> Iterator[bytes]:
    """Frame by frame: the package's own stream reader ends a cut file without a word."""
    zstandard = require("zstandard", "zstd", "Reading .zst")
    with open(path, "rb") as stream:
        frame, data = None, b""
        while data or (data := stream.read(1 << 12)):  # a small bite: 4 KB can unpack to 100 MB
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                chunk = frame.decompress(data)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from None
            data = frame.unused_data
            frame = None if frame.eof else frame
            if chunk:
                yield chunk
    if frame is not None:
        raise EOFError("the last frame has no end")


_COMPRESSIONS = (
    Compression(".gz", b"\x1f\x8b", _unpacker(gzip.GzipFile)),
    Compression(".bz2", b"BZh", _unpacker(bz2.BZ2File)),
    Compression(".xz", b"\xfd7zXZ\x00", _unpacker(lzma.LZMAFile)),
    Compression(".zst", b"\x28\xb5\x2f\xfd", _unpack_zstd),
)
_BY_SUFFIX = {compression.suffix: compression for compression in _COMPRESSIONS}
