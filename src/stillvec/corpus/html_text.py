"""HTML as text, by Python's `html.parser`: paragraphs without scripts, styles, navigation and preformatted code."""

import codecs
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser

from stillvec.corpus.decoding import cut, decode, normalize
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats
from stillvec.errors import CorpusError
from stillvec.files import detect_encoding

MAX_DOCUMENT = 1 << 26  # characters of a document
_SKIPPED = frozenset(
    {"aside", "audio", "button", "canvas", "footer", "head", "iframe", "math", "nav", "noscript", "object", "option"}
    | {"pre", "rp", "rt", "script", "select", "style", "svg", "template", "textarea", "video"}
)  # elements whose content is not prose
_INLINE = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img"}
    | {"input", "ins", "kbd", "label", "mark", "q", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub"}
    | {"sup", "time", "tt", "u", "var", "wbr"}
)  # all others separate paragraphs
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
_CONTENT = frozenset({"article", "body", "main"})  # where these begin, an element that was never closed is over
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_URL = re.compile(r"\b(?:https?|ftp)://\S+|\bwww\.\S+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def is_html(head: bytes) -> bool:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:200].lower()
    return start.startswith((b"<!doctype html", b"<html"))


def read_html(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    return html_paragraphs(_decode(opened, stats), opened.name)


def html_paragraphs(texts: Iterable[str], name: str) -> Iterator[str]:
    """Yield the paragraphs of a page that is given in pieces."""
    parser = _TextParser()
    for text in limit_size(texts, name):
        yield from parser.take(text)
    yield from parser.finish()


def limit_size(texts: Iterable[str], name: str) -> Iterator[str]:
    """The same pieces of a document; too many characters are an error."""
    n_characters = 0
    for text in texts:
        n_characters += len(text)
        if n_characters > MAX_DOCUMENT:
            what, got = f"a document of at most {MAX_DOCUMENT:,} characters", "more"
            raise CorpusError.expected(what, got, path=name, cure="divide it", code="long-document")
        yield text


def clean_paragraphs(text: str) -> list[str]:
    """The text of a paragraph with single spaces and without addresses; none if it has no letter or digit."""
    plain = " ".join(_SURROGATE.sub("\ufffd", normalize(_URL.sub(" ", text))).split())
    return cut(plain) if any(map(str.isalnum, plain)) else []


def _decode(opened: OpenedFile, stats: ReadStats) -> Iterator[str]:
    """By the byte order mark or as UTF-8, unless the page names another encoding."""
    named = _CHARSET.search(opened.head)
    try:
        codec = codecs.lookup(named[1].decode("ascii")) if named else None
    except (LookupError, UnicodeDecodeError):
        codec = None
    if codec is None or codec.name.startswith("utf") or not codec._is_text_encoding or detect_encoding(opened.head):
        yield from decode(opened, stats)
        return
    decoder = codecs.getincrementaldecoder(codec.name)("replace")
    for chunk in opened.chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


class _TextParser(HTMLParser):
    """Collects paragraphs. Of an element that is skipped, only its own tags are counted until it is closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._pieces: list[str] = []
        self._ready: list[str] = []
        self._skipped = ""  # the element that is being skipped
        self._depth = 0  # of elements of this name
        self._n_sup = 0

    def take(self, text: str) -> list[str]:
        """The paragraphs that this piece of the page completes."""
        try:
            self.feed(text)
        except AssertionError:  # of the parser, on a malformed declaration: what follows is lost
            self.rawdata = ""
        ready, self._ready = self._ready, []
        return ready

    def finish(self) -> list[str]:
        try:
            self.close()
        except AssertionError:
            self.rawdata = ""
        self._end_paragraph()
        return self._ready

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipped and tag in _CONTENT:
            self._skipped = ""
        if self._skipped:
            self._depth += tag == self._skipped
            return
        self._n_sup += tag == "sup"
        given = dict(attrs)
        note_mark = tag == "a" and self._n_sup > 0  # of a footnote, which would become part of the word
        hidden = "hidden" in given or given.get("aria-hidden") == "true" or given.get("role") == "navigation"
        if tag not in _INLINE and tag != "br":
            self._end_paragraph()
        if (tag in _SKIPPED or note_mark or hidden) and tag not in _VOID and tag not in _CONTENT:
            self._skipped, self._depth = tag, 1
        elif tag == "br":
            self._pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._depth -= tag == self._skipped
            if not self._depth:
                self._skipped = ""
            return
        self._n_sup = max(0, self._n_sup - (tag == "sup"))
        if tag not in _INLINE and tag != "br":
            self._end_paragraph()

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._pieces.append(data)

    def unknown_decl(self, data: str) -> None:
        """CDATA of XHTML is text."""
        if data.startswith("CDATA["):
            self.handle_data(data[6:])

    def _end_paragraph(self) -> None:
        self._ready += clean_paragraphs("".join(self._pieces))
        self._pieces = []
