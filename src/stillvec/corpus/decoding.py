"""Bytes to text to lines, in bounded memory: UTF-8, or UTF-16 and UTF-32 with a byte order mark."""

import codecs
import re
from collections.abc import Iterable, Iterator

from stillvec.corpus.reader_input import OpenedFile, ReadStats
from stillvec.errors import CorpusError
from stillvec.files import detect_encoding

MAX_PARAGRAPH = 100_000  # characters; longer paragraphs are cut
_MAX_RECORD = 1 << 26  # characters of a line that cannot be cut; more would fill the memory

_ESCAPED = re.compile("[\udc80-\udcff]")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*\s|[。！？।॥۔؟።։]")


def decode(opened: OpenedFile, stats: ReadStats) -> Iterator[str]:
    """Yield the text in pieces, normalized by `normalize`."""
    encoding = detect_encoding(opened.head)
    pieces = _decode_marked(opened, encoding, stats) if encoding else _decode_utf8(opened, stats)
    pending = ""
    for piece in pieces:
        text = pending + piece
        pending = "\r" if text.endswith("\r") else ""  # the next piece may begin with its \n
        yield normalize(text[:-1] if pending else text)
    if pending:
        yield "\n"


def normalize(text: str) -> str:
    """Use \\n as the only line break, drop byte order marks, and replace NULs with spaces."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x00" in text:
        text = text.replace("\x00", " ")
    return text.replace("\ufeff", "") if "\ufeff" in text else text


def _decode_utf8(opened: OpenedFile, stats: ReadStats) -> Iterator[str]:
    rest, offset, line = b"", 0, 1
    for chunk in opened.chunks:
        data = rest + chunk
        text, used = _repair(data, False, (opened.name, line, offset), stats)
        yield text
        rest, offset, line = data[used:], offset + used, line + data.count(b"\n", 0, used)
    if rest:
        yield _repair(rest, True, (opened.name, line, offset), stats)[0]


def _repair(data: bytes, final: bool, place: tuple[str, int, int], stats: ReadStats) -> tuple[str, int]:
    """The decoded text and the number of bytes used; each byte that is not UTF-8 becomes one U+FFFD."""
    try:
        return codecs.utf_8_decode(data, "strict", final)
    except UnicodeDecodeError as error:
        first = error.start
    text, used = codecs.utf_8_decode(data, "surrogateescape", final)
    text, number = _ESCAPED.subn("\ufffd", text)
    name, line, offset = place
    stats.add_replaced(number, name, line + data.count(b"\n", 0, first), offset + first)
    return text, used


def _decode_marked(opened: OpenedFile, encoding: str, stats: ReadStats) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    unit = len("a".encode(f"{encoding}-le"))
    line, fed = 1, 0
    for chunk in opened.chunks:
        offset = max(unit, fed - len(decoder.getstate()[0]))  # of the first byte of this text; the mark is one unit
        text = decoder.decode(chunk)
        if wrong := text.count("\ufffd"):
            before = text[: text.index("\ufffd")]
            byte = offset + len(before.encode(f"{encoding}-le"))
            stats.add_replaced(unit * wrong, opened.name, line + before.count("\n"), byte)
        line, fed = line + text.count("\n"), fed + len(chunk)
        yield text
    yield decoder.decode(b"", final=True)


def read_records(opened: OpenedFile, stats: ReadStats) -> Iterator[str]:
    """Yield the lines of a file whose lines are records and cannot be cut."""
    return split_lines(_check_line_length(decode(opened, stats), opened.name))


def _check_line_length(texts: Iterable[str], name: str) -> Iterator[str]:
    length = 0
    for text in texts:
        end = text.rfind("\n")
        length = length + len(text) if end < 0 else len(text) - end - 1
        if length > _MAX_RECORD:
            got = f"a line of more than {_MAX_RECORD:,} characters"
            raise CorpusError.expected("one record per line", got, path=name, code="long-line")
        yield text


def split_lines(texts: Iterable[str], longest: int | None = None) -> Iterator[str]:
    """Yield lines without their breaks; lines longer than `longest` are cut."""
    pending: list[str] = []
    length = 0
    for text in texts:
        first, line_break, rest = text.partition("\n")
        pending.append(first)
        length += len(first)
        if not line_break and (longest is None or length <= longest):
            continue
        pieces = cut("".join(pending), longest)
        if line_break:
            more = rest.split("\n")
            if longest is not None and max(map(len, more)) > longest:
                more = [piece for line in more for piece in cut(line, longest)]
            pieces += more
        last = pieces.pop()
        yield from pieces
        pending, length = [last], len(last)
    yield from cut("".join(pending), longest)


def cut(text: str, longest: int | None = MAX_PARAGRAPH) -> list[str]:
    """Split into pieces of at most `longest` characters, after a sentence if possible, else at a space."""
    pieces: list[str] = []
    start = 0
    while longest is not None and len(text) - start > longest:
        window = text[start : start + longest]
        pieces.append(window[: _find_cut(window)])
        start += len(pieces[-1])
    pieces.append(text[start:])
    return pieces


def _find_cut(window: str) -> int:
    half = len(window) // 2
    ends = [match.end() for match in _SENTENCE_END.finditer(window, len(window) - len(window) // 10)]
    if ends:
        return ends[-1]
    space = max(window.rfind(" ", half), window.rfind("\t", half), window.rfind("\u3000", half))
    return space + 1 if space >= 0 else len(window)
