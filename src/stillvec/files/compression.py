"""One opener for every file that is read: gzip, bzip2, xz and Zstandard are recognized by their first bytes.

Reading streams in bounded memory. What is written is compressed by the suffix of its name.
"""

import bz2
import errno
import gzip
import importlib
import io
import lzma
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

from stillvec.errors import InputError, MissingExtra
from stillvec.files.atomic import atomic_file
from stillvec.files.temporary_names import scratch_folder

HEAD_BYTES = 1 << 17  # to recognize a format by; more than one line of 4,096 numbers
_MAGIC_BYTES = 10
_MAX_RATIO = 200  # uncompressed bytes per compressed byte, beyond
_MAX_SMALL = 1 << 28  # uncompressed bytes that any file may have
_MIN_FREE = 64 << 20  # bytes of a disk that a temporary copy leaves free
_ZSTD_BYTES = 1 << 12  # compressed bytes per call: 4 KB can expand to 100 MB


@dataclass(frozen=True)
class Compression:
    """A compressed file format: the suffix of its files, how they begin, and how they are opened."""

    suffix: str
    magic: re.Pattern[bytes]
    reader: Callable[[BinaryIO], Any]
    writer: Callable[[Path], Any]


@contextmanager
def open_bytes(path: Path, error: type[InputError], *, name: str | None = None) -> Iterator[Any]:
    """Open a file for reading, decompressed if its first bytes say so; the stream has `peek`.

    A missing, unreadable or damaged file raises `error`; `name` is what the message calls the file (default: its path).
    """
    name = name or str(path)
    stream: Any = None
    compression = None
    try:
        _check_is_file(path, name, error)
        with open(path, "rb") as raw:
            compression = _find_compression(path, raw.peek(_MAGIC_BYTES), name, error)
            stream = raw
            if compression:
                stream = io.BufferedReader(_BoundedReader(compression.reader(raw), raw, name, error), HEAD_BYTES)
            yield stream
    except OSError as problem:
        if problem.errno is None and compression:  # bz2 and gzip raise OSError for damaged data
            raise _archive_error(compression, stream, problem, name, error) from None
        raise unreadable(problem, name, error) from None
    except (EOFError, zlib.error, lzma.LZMAError) as problem:
        if compression is None:
            raise
        raise _archive_error(compression, stream, problem, name, error) from None


def is_compressed(path: Path, error: type[InputError]) -> bool:
    """Whether a file is compressed, by its first bytes."""
    name = str(path)
    try:
        _check_is_file(path, name, error)
        with open(path, "rb") as raw:
            return _find_compression(path, raw.peek(_MAGIC_BYTES), name, error) is not None
    except OSError as problem:
        raise unreadable(problem, name, error) from None


def read_head(path: Path, error: type[InputError]) -> bytes:
    """The first uncompressed bytes of a file, enough to recognize its format."""
    with open_bytes(path, error) as stream:
        head: bytes = stream.read(HEAD_BYTES)
    return head


@contextmanager
def open_local(path: Path, error: type[InputError]) -> Iterator[Path]:
    """Yield a path that can be memory-mapped: `path`, or a temporary uncompressed copy of it."""
    if not is_compressed(path, error):
        yield path
        return
    with scratch_folder() as folder:
        copy = folder / inner_name(path)
        with open_bytes(path, error) as stream, open(copy, "wb") as target:
            copy_temporary(stream, target, str(path), error)
        yield copy


def copy_temporary(stream: IO[bytes], target: IO[bytes], name: str, error: type[InputError]) -> None:
    """Copy a stream to a temporary file, as long as the disk has space; `name` is what the message calls it."""
    folder = Path(target.name).parent if isinstance(target.name, str) else Path(tempfile.gettempdir())
    n_unchecked = _MIN_FREE
    while chunk := stream.read(HEAD_BYTES):
        n_unchecked += len(chunk)
        if n_unchecked > _MIN_FREE // 4:
            n_unchecked = 0
            if shutil.disk_usage(folder).free < _MIN_FREE:
                raise _no_space(name, folder, error)
        try:
            target.write(chunk)
        except OSError as problem:
            raise _no_space(name, folder, error) if problem.errno == errno.ENOSPC else problem from None


def _no_space(name: str, folder: Path, error: type[InputError]) -> InputError:
    problem = f"{name}: no space left for its temporary copy in {folder}"
    return error(f"{problem}; name a folder on a larger disk in $TMPDIR.", code="no-space", path=name)


def check_expansion(n_bytes: int, n_compressed: int, name: str, error: type[InputError]) -> None:
    """Refuse a small file that would fill the memory or the disk."""
    if n_bytes > max(_MAX_SMALL, _MAX_RATIO * n_compressed):
        what = f"at most {_MAX_RATIO} bytes per compressed byte, beyond {_MAX_SMALL:,} in all"
        got = f"{n_bytes:,} bytes or more from {n_compressed:,}"
        raise error.expected(what, got, path=name, cure="decompress it first", code="too-large")


def find_parquet_chunks(file: Any, columns: list[str], name: str, error: type[InputError]) -> list[tuple[int, Any]]:
    """(rows, metadata) of the chunks of these columns of a Parquet file, to which the same limit applies.

    Arrow ends the process if it is asked for the metadata of a damaged chunk, so a row of each is read first.
    """
    metadata = file.metadata
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    leaves = [n for n, path in enumerate(paths) if any(f"{path}.".startswith(f"{column}.") for column in columns)]
    chunks = []
    for number in range(metadata.num_row_groups):
        next(file.iter_batches(batch_size=1, row_groups=[number], columns=columns), None)
        group = metadata.row_group(number)
        chunks += [(group.num_rows, group.column(leaf)) for leaf in leaves]
    for _, chunk in chunks:
        check_expansion(chunk.total_uncompressed_size, chunk.total_compressed_size, name, error)
    return chunks


@contextmanager
def create_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Write a file atomically, compressed if its suffix says so."""
    compression = _BY_SUFFIX.get(path.suffix.lower())
    with atomic_file(path) as part, compression.writer(part) if compression else open(part, "wb") as stream:
        yield stream


@contextmanager
def create_local(path: Path) -> Iterator[Path]:
    """Like `create_bytes`, for writers that need a path."""
    if path.suffix.lower() not in _BY_SUFFIX:
        with atomic_file(path) as part:
            yield part
        return
    with scratch_folder() as folder:
        plain = folder / inner_name(path)
        yield plain
        with create_bytes(path) as stream, open(plain, "rb") as written:
            shutil.copyfileobj(written, stream, HEAD_BYTES)


def inner_name(path: Path) -> str:
    """The file name without the suffix of a compression: `a.vec` for `a.vec.gz`."""
    return path.stem if path.suffix.lower() in _BY_SUFFIX else path.name


def inner_suffix(path: Path) -> str:
    """The suffix below that of a compression, in lower case: `.jsonl` for `a.jsonl.gz`, `.txt` for `a.txt`."""
    return Path(inner_name(path)).suffix.lower()


def unreadable(problem: OSError, name: str, error: type[InputError]) -> Exception:
    """The operating system's refusal to read a file."""
    if problem.errno == errno.ENOMEM:
        return MemoryError(problem.strerror)
    if isinstance(problem, FileNotFoundError):
        return error.not_found(name, "a file to read")
    if isinstance(problem, IsADirectoryError):
        return error.expected("a file", "a folder", path=name, code="is-folder")
    reason = problem.strerror or str(problem)
    return error(f"{name}: cannot be read ({reason}); check its permissions.", code="unreadable", path=name)


def _check_is_file(path: Path, name: str, error: type[InputError]) -> None:
    """Refuse devices, such as /dev/zero: they may have no end."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISDIR(mode)):
        raise error.expected("a file", "a device", path=name, code="not-a-file")


def _find_compression(path: Path, head: bytes, name: str, error: type[InputError]) -> Compression | None:
    for compression in _COMPRESSIONS:
        if compression.magic.match(head):
            return compression
    suffix = path.suffix.lower()
    if suffix in _BY_SUFFIX:
        cure = "it may be truncated or already decompressed: download it again, or rename it"
        raise error.expected(
            f"a {suffix} file", f"one that begins with {head[:4]!r}", path=name, cure=cure, code=DAMAGED
        )
    return None


def _archive_error(
    compression: Compression, stream: Any, problem: Exception, name: str, error: type[InputError]
) -> InputError:
    reason = str(problem).strip().rstrip(".") or type(problem).__name__
    position = stream.tell() if stream else 0
    return error(
        f"{name}: the {compression.suffix} archive is damaged or truncated after {position:,} uncompressed bytes "
        f"({reason}); copy or download it again.",
        code=DAMAGED,
        path=name,
    )


class _BoundedReader(io.RawIOBase):
    """Reads an uncompressed stream, and refuses to expand a small file to a huge one."""

    def __init__(self, stream: Any, raw: BinaryIO, name: str, error: type[InputError]) -> None:
        self._stream, self._raw, self._name, self._error = stream, raw, name, error
        self._position = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        size: int = self._stream.readinto(buffer)
        self._position += size
        check_expansion(self._position, self._raw.tell(), self._name, self._error)
        return size


class _ZstdReader(io.RawIOBase):
    """Decompresses frame by frame; the package's own stream reader does not notice a truncated file."""

    def __init__(self, raw: BinaryIO) -> None:
        self._zstandard = _require_zstandard("Reading .zst")
        self._raw, self._frame, self._input = raw, None, b""
        self._output = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._output and self._fill():
            pass
        size = min(len(buffer), len(self._output))
        buffer[:size], self._output = self._output[:size], self._output[size:]
        return size

    def _fill(self) -> bool:
        """Decompress the next bytes; False at the end of the file."""
        self._input = self._input or self._raw.read(_ZSTD_BYTES)
        if not self._input:
            if self._frame is not None:
                raise EOFError("the last frame is incomplete")
            return False
        frame: Any = self._frame or self._zstandard.ZstdDecompressor().decompressobj()
        try:
            self._output = memoryview(frame.decompress(self._input))
        except self._zstandard.ZstdError as problem:
            raise EOFError(str(problem)) from None
        self._input = frame.unused_data
        self._frame = None if frame.eof else frame
        return True


@contextmanager
def _write_gzip(path: Path) -> Iterator[Any]:
    """Compress as the command gzip (level 9 takes five times longer), without the time and our temporary name."""
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as stream:
        yield stream


def _write_zstd(path: Path) -> Any:
    return _require_zstandard("Writing .zst").open(path, "wb")


def _require_zstandard(purpose: str) -> Any:
    try:
        return importlib.import_module("zstandard")
    except ModuleNotFoundError:
        raise MissingExtra("zstandard", "zstd", purpose) from None


DAMAGED = "damaged-archive"
_COMPRESSIONS = (
    Compression(
        ".gz",
        re.compile(rb"\x1f\x8b"),
        lambda raw: gzip.GzipFile(fileobj=raw),
        _write_gzip,
    ),
    Compression(
        ".bz2",
        re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),  # a text may begin with the letters BZh
        bz2.BZ2File,
        partial(bz2.open, mode="wb"),
    ),
    Compression(".xz", re.compile(rb"\xfd7zXZ\x00"), lzma.LZMAFile, partial(lzma.open, mode="wb")),
    Compression(".zst", re.compile(rb"\x28\xb5\x2f\xfd"), lambda raw: io.BufferedReader(_ZstdReader(raw)), _write_zstd),
)
_BY_SUFFIX = {compression.suffix: compression for compression in _COMPRESSIONS}
