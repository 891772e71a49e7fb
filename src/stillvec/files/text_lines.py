"""Lines of text files whose lines are records: UTF-8, or UTF-16 and UTF-32 with a byte order mark."""

import codecs
import io
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from stillvec.errors import InputError
from stillvec.files.binary_check import check_is_text
from stillvec.files.compression import open_bytes

_MAX_LINE = 1 << 26  # bytes; a longer line is no record, and would fill the memory
_HEAD_BYTES = 1 << 13
_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def detect_encoding(head: bytes) -> str | None:
    """The encoding that a byte order mark announces; None for UTF-8."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


def read_lines(path: Path, error: type[InputError]) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its break) of a file, which may be compressed; anything but text raises `error`."""
    with open_bytes(path, error) as stream:
        yield from enumerate(decode_lines(stream, path, error), 1)


def decode_lines(stream: Any, path: Path, error: type[InputError]) -> Iterator[str]:
    """Lines without their breaks of a stream that has `peek`, which errors call `path`; binary data raise `error`."""
    head = stream.peek(_HEAD_BYTES)
    check_is_text(head, str(path), error)
    encoding = detect_encoding(head)
    yield from _decode_marked(stream, encoding, path, error) if encoding else _decode_utf8(stream, path, error)


def _decode_utf8(stream: IO[bytes], path: Path, error: type[InputError]) -> Iterator[str]:
    for number, raw in enumerate(iter(partial(stream.readline, _MAX_LINE), b""), 1):
        _check_length(len(raw), number, path, error)
        try:
            text = raw.decode()
        except UnicodeDecodeError as problem:
            raise _not_text("UTF-8", problem, path, number, error) from None
        text = text.removeprefix("\ufeff") if number == 1 else text
        yield from text.removesuffix("\n").removesuffix("\r").replace("\x00", " ").split("\r")


def _decode_marked(stream: IO[bytes], encoding: str, path: Path, error: type[InputError]) -> Iterator[str]:
    text = io.TextIOWrapper(stream, encoding)
    number = 0
    try:
        for number, line in enumerate(iter(partial(text.readline, _MAX_LINE), ""), 1):
            _check_length(len(line), number, path, error)
            yield line.removesuffix("\n").replace("\x00", " ")
    except UnicodeDecodeError as problem:
        raise _not_text(encoding.upper(), problem, path, number + 1, error) from None
    finally:
        with suppress(ValueError):  # closed
            text.detach()


def _check_length(length: int, number: int, path: Path, error: type[InputError]) -> None:
    if length == _MAX_LINE:
        raise error.expected("one record per line", f"a line of more than {_MAX_LINE:,} bytes", path=path, line=number)


def _not_text(
    encoding: str, problem: UnicodeDecodeError, path: Path, number: int, error: type[InputError]
) -> InputError:
    byte = f"the byte 0x{problem.object[problem.start]:02x}"
    cure = "convert the file (iconv -f latin1 -t utf8)"
    return error.expected(f"{encoding} text", byte, path=path, line=number, cure=cure, code="encoding")
