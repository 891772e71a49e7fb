"""Office documents (DOCX) and books (EPUB): zip archives of XML and XHTML, read member by member."""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from stillvec.corpus.decoding import normalize
from stillvec.corpus.html_text import MAX_DOCUMENT, clean_paragraphs, html_paragraphs
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats
from stillvec.errors import CorpusError
from stillvec.files import check_is_text

_MAX_RATIO = 200  # uncompressed bytes of a member per compressed byte, beyond
_MAX_SMALL = 1 << 22  # uncompressed bytes
_CHUNK = 1 << 16
_MAX_CHAPTERS = 100_000
_DOCX_TEXTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
_CONTAINER = "META-INF/container.xml"
_SPACES = {"tab": " ", "br": " ", "cr": " ", "noBreakHyphen": "-"}


def read_docx(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Yield paragraphs, also of tables and notes; headers, footers and deleted text are left out."""
    with _open_archive(opened, "an office document (DOCX)") as archive:
        _find_member(archive, _DOCX_TEXTS[0], opened.name)
        for name in _DOCX_TEXTS:
            if name in archive.NameToInfo:
                yield from _office_paragraphs(_read_member(archive, name, opened.name))


def read_epub(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Yield the paragraphs of the chapters in reading order."""
    with _open_archive(opened, "a book (EPUB)") as archive:
        package = next((element.get("full-path") for element in _elements(archive, _CONTAINER, opened.name)
                        if _tag(element) == "rootfile"), None)  # fmt: skip
        for chapter in _list_chapters(archive, package or "", opened.name):
            chunks = _read_member(archive, chapter, opened.name)
            first = next(chunks, b"")
            check_is_text(first, f"{opened.name}/{chapter}", CorpusError)  # an encrypted chapter is not
            text = b"".join([first, *chunks]).decode("utf-8", "replace")
            yield from html_paragraphs([normalize(text)], opened.name)


def _list_chapters(archive: zipfile.ZipFile, package: str, name: str) -> list[str]:
    """The members of the spine of a package, without its table of contents."""
    members: dict[str, str] = {}
    order: list[str] = []
    for element in _elements(archive, package, name):
        if _tag(element) == "item" and "nav" not in (element.get("properties") or "").split():
            path = posixpath.join(posixpath.dirname(package), unquote(element.get("href") or ""))
            members[element.get("id") or ""] = posixpath.normpath(path)
        elif _tag(element) == "itemref":
            order.append(element.get("idref") or "")
    return [members[key] for key in dict.fromkeys(order[:_MAX_CHAPTERS]) if members.get(key) in archive.NameToInfo]


def _office_paragraphs(chunks: Iterator[bytes]) -> Iterator[str]:
    parser: Any = XMLPullParser(events=("start", "end"))
    depth, pieces = 0, [""]  # text boxes are paragraphs inside paragraphs
    for chunk in chunks:
        parser.feed(chunk)
        for event, element in parser.read_events():
            if not isinstance(element, Element):
                continue
            tag = _tag(element)
            if tag == "p":
                if event == "start" or depth:
                    yield from clean_paragraphs("".join(pieces))
                    pieces = []
                depth = max(0, depth + (1 if event == "start" else -1))
            if event == "end":
                if tag == "t":
                    pieces.append(element.text or "")
                elif tag in _SPACES:
                    pieces.append(_SPACES[tag])
                element.clear()
    parser.close()


def _elements(archive: zipfile.ZipFile, member: str, name: str) -> Iterator[Element]:
    parser: Any = XMLPullParser(events=("start",))
    for chunk in _read_member(archive, member, name):
        parser.feed(chunk)
        yield from (element for _, element in parser.read_events() if isinstance(element, Element))
    parser.close()


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _find_member(archive: zipfile.ZipFile, member: str, name: str) -> zipfile.ZipInfo:
    if member not in archive.NameToInfo:
        raise CorpusError.expected(f"a document with {member or 'a package'}", "an archive without it", path=name)
    return archive.getinfo(member)


def _read_member(archive: zipfile.ZipFile, member: str, name: str) -> Iterator[bytes]:
    """Yield the content of a member; one that expands too much is refused before it is read."""
    entry = _find_member(archive, member, name)
    if entry.file_size > MAX_DOCUMENT or entry.file_size > max(_MAX_SMALL, _MAX_RATIO * entry.compress_size):
        what = f"a part of at most {MAX_DOCUMENT:,} bytes, and {_MAX_RATIO} for each compressed one"
        raise CorpusError.expected(what, f"{entry.file_size:,} in {member}", path=name, code="too-large")
    with archive.open(entry) as stream:  # which reads no more than `file_size`
        while chunk := stream.read(_CHUNK):
            yield chunk


@contextmanager
def _open_archive(opened: OpenedFile, what: str) -> Iterator[zipfile.ZipFile]:
    damage = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError)
    try:
        with zipfile.ZipFile(opened.path) as archive:
            yield archive
    except ParseError as error:
        raise _make_error(what, f"damaged XML in it ({error})", opened.name) from None
    except (*damage, OSError, KeyError, AttributeError) as error:
        raise _make_error(what, f"another or a damaged file ({error})", opened.name) from None


def _make_error(what: str, got: str, name: str) -> CorpusError:
    cure = "save it again, or as plain text"
    return CorpusError.expected(what, got, path=name, cure=cure, code="bad-document")
