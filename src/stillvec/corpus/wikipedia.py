"""Wikipedia dumps (`pages-articles.xml.bz2`): the articles, a page at a time, without redirects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from stillvec.corpus.decoding import cut
from stillvec.corpus.opened_file import OpenedFile
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.corpus.wikitext import plain_paragraphs
from stillvec.errors import CorpusError

_SILENT = {"-2", "6", "14"}  # namespaces whose links show no text: media, files, categories
_ENDLESS = 1 << 26  # bytes without an element beginning or ending
_ENGLISH = frozenset({"media", "file", "image", "category"})  # understood in every language's wikitext


def is_wikipedia(head: bytes) -> bool:
    """Whether a file begins like a dump of a wiki."""
    return b"<mediawiki" in head[:2048] and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def read_wikipedia(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """The prose of every article, mark-up taken away."""
    if not is_wikipedia(opened.head):
        raise CorpusError(
            f"Of XML only dumps of wikis (<mediawiki ...>) are read, and {opened.name} is something else; "
            "save its text as .txt or .jsonl."
        )
    silent = _ENGLISH
    for element in _elements(opened):
        kind = element.tag.rpartition("}")[2]
        if kind == "namespace" and element.get("key") in _SILENT and element.text:
            silent |= {element.text.lower()}
        elif kind == "page":
            for paragraph in plain_paragraphs(_wikitext(element), silent):
                yield from cut(paragraph)


def _elements(opened: OpenedFile) -> Iterator[Element]:
    """Elements as they end; what hangs on the root is cut off after every page, to keep memory small."""
    open_elements: list[Element] = []
    for event, element in _events(opened):
        if event == "start":
            open_elements.append(element)
            continue
        open_elements.pop()
        yield element
        if len(open_elements) == 1:
            open_elements[0].clear()


def _events(opened: OpenedFile) -> Iterator[Any]:
    """(event, element) where elements start and end; what is no XML is named with its line."""
    parser: XMLPullParser[Any] = XMLPullParser(events=("start", "end"))
    try:  # what feed() finds wrong comes out of read_events()
        silent = 0
        for chunk in opened.chunks:
            parser.feed(chunk)
            silent += len(chunk)
            for event in parser.read_events():
                silent = 0
                yield event
            if silent > _ENDLESS:
                raise CorpusError(f"{opened.name} has an element of more than {_ENDLESS:,} bytes, which is no article.")
        parser.close()
        yield from parser.read_events()
    except ParseError as error:
        raise CorpusError(
            f"The XML of {opened.name} is malformed or cut short ({error}); copy or download it again."
        ) from None


def _wikitext(page: Element) -> str:
    """The latest text of an article; nothing for redirects and for pages that are no articles."""
    parts = {part.tag.rpartition("}")[2]: part for part in page}
    namespace = parts["ns"].text if "ns" in parts else "0"
    if "redirect" in parts or namespace != "0":
        return ""
    texts = [element.text or "" for element in page.iter() if element.tag.rpartition("}")[2] == "text"]
    text = texts[-1] if texts else ""
    return "" if text[:9].lower() == "#redirect" else text
