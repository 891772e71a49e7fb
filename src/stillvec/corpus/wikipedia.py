"""Wikipedia dumps (`pages-articles.xml.bz2`): the articles, page by page, without redirects."""

from collections.abc import Iterator
from itertools import chain
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from stillvec.corpus.decoding import cut
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats
from stillvec.corpus.wikitext import plain_paragraphs
from stillvec.errors import CorpusError

_MEDIA_NAMESPACES = {"-2", "6", "14"}  # namespaces whose links show no text: media, files, categories
_MAX_ELEMENT = 1 << 26  # bytes
_MAX_PAGE = 1 << 28  # bytes of a page in memory
_ELEMENT_BYTES = 200  # of an element without text
_MEDIA_NAMES = frozenset({"media", "file", "image", "category"})  # understood in every language's wikitext


def is_wikipedia(head: bytes) -> bool:
    return b"<mediawiki" in head[:2048] and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def read_wikipedia(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    for _, paragraphs in read_articles(opened):
        yield from paragraphs


def read_articles(opened: OpenedFile) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield the title and the paragraphs of each article."""
    if not is_wikipedia(opened.head):
        cure = "save its text as .txt or .jsonl"
        raise CorpusError.expected("a MediaWiki dump (<mediawiki ...>)", "other XML", path=opened.name, cure=cure)
    media = _MEDIA_NAMES
    for element in _elements(opened):
        kind = element.tag.rpartition("}")[2]
        if kind == "namespace" and element.get("key") in _MEDIA_NAMESPACES and element.text:
            media |= {element.text.lower()}
        elif kind == "page" and (wikitext := _wikitext(element)):
            title = next((part.text for part in element if part.tag.rpartition("}")[2] == "title"), None)
            yield title or "", chain.from_iterable(map(cut, plain_paragraphs(wikitext, media)))


def _elements(opened: OpenedFile) -> Iterator[Element]:
    """Yield elements as they end; the root is cleared after every page to bound memory."""
    open_elements: list[Element] = []
    n_bytes = 0  # of the page so far
    for event, element in _events(opened):
        if event == "start":
            open_elements.append(element)
            n_bytes += _ELEMENT_BYTES + sum(map(len, element.attrib.values()))
        else:
            open_elements.pop()
            n_bytes += len(element.text or "") + len(element.tail or "")
            yield element
            if len(open_elements) == 1:
                open_elements[0].clear()
                n_bytes = 0
        if n_bytes > _MAX_PAGE:
            raise CorpusError.expected("an article", f"a page of more than {_MAX_PAGE:,} bytes", path=opened.name)


def _events(opened: OpenedFile) -> Iterator[Any]:
    """Yield (event, element) where elements start and end; malformed XML raises an error."""
    parser: XMLPullParser[Any] = XMLPullParser(events=("start", "end"))
    try:  # read_events() raises the errors of feed()
        n_bytes = 0  # since the last event
        for chunk in opened.chunks:
            parser.feed(chunk)
            n_bytes += len(chunk)
            for event in parser.read_events():
                n_bytes = 0
                yield event
            if n_bytes > _MAX_ELEMENT:
                got = f"an element of more than {_MAX_ELEMENT:,} bytes"
                raise CorpusError.expected("an article", got, path=opened.name)
        parser.close()
        yield from parser.read_events()
    except ParseError as error:
        got, line, cure = f"malformed or truncated XML ({error})", error.position[0], "copy or download it again"
        raise CorpusError.expected("an XML dump", got, path=opened.name, line=line, cure=cure, code="bad-xml") from None


def _wikitext(page: Element) -> str:
    """The latest text of an article; empty for redirects and for pages that are not articles."""
    parts = {part.tag.rpartition("}")[2]: part for part in page}
    namespace = parts["ns"].text if "ns" in parts else "0"
    if "redirect" in parts or namespace != "0":
        return ""
    texts = [element.text or "" for element in page.iter() if element.tag.rpartition("}")[2] == "text"]
    text = texts[-1] if texts else ""
    return "" if text[:9].lower() == "#redirect" else text
