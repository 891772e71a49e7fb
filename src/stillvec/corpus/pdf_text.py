"""PDF as text, by pypdf: lines are joined to paragraphs, words divided at line ends repaired, page edges dropped."""

import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from stillvec.corpus.html_text import MAX_DOCUMENT, clean_paragraphs
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats
from stillvec.errors import CorpusError, StillvecWarning, is_out_of_memory
from stillvec.registry import require

_EDGE_LINES = 1  # at the top and the bottom of a page, which may be a header or footer
_MIN_PAGES = 3  # on which it is repeated
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"\W*(?:page|seite|p\.)?\s*(?:\d{1,5}|[ivxlc]{1,8})\W*(?:(?:of|von|/)\s*\d{1,5})?\W*", re.I)
_STOPS = tuple(".!?:;…\"”'’)]")
_SHORT = 0.8  # of the usual length of a line: a paragraph ends there
_DIVIDED = re.compile(r"(?<![-\w])[^\W\d_]{2,}[-\u00ad\u2010]$|\u00ad$")  # "exam-" at the end of a line


def is_pdf(head: bytes) -> bool:
    return b"%PDF-" in head[:1024]


def read_pdf(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    pages = _drop_edges(_read_pages(opened))
    lengths = [len(line) for page in pages for line in page]
    if not lengths:
        message = f"{opened.name} has no text; scanned pages need optical character recognition (ocrmypdf)."
        warnings.warn(message, StillvecWarning, stacklevel=2)
        return
    for paragraph in _join_lines([line for page in pages for line in page], median(lengths)):
        yield from clean_paragraphs(paragraph)


def _read_pages(opened: OpenedFile) -> list[list[str]]:
    pypdf = require("pypdf", "pdf", "Reading PDF")
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it repairs damaged files, and tells of every step
    pages: list[list[str]] = []
    n_characters = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for page in pypdf.PdfReader(opened.path).pages:
                text = str(page.extract_text())
                n_characters += len(text)
                pages.append([line.strip() for line in text.splitlines() if line.strip()])
                if n_characters > MAX_DOCUMENT:
                    break
    except Exception as error:  # a damaged file makes it raise almost any
        if is_out_of_memory(error):
            raise MemoryError from None
        kind = "an encrypted one" if "decrypt" in str(error) else f"another or a damaged file ({_shorten(error)})"
        cure = "save it without a password, or as plain text (pdftotext)"
        raise CorpusError.expected("a PDF", kind, path=opened.name, cure=cure, code="bad-document") from None
    if n_characters > MAX_DOCUMENT:
        what = f"a document of at most {MAX_DOCUMENT:,} characters"
        raise CorpusError.expected(what, "more", path=opened.name, cure="divide it", code="long-document")
    return pages


def _shorten(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:120].rstrip(": ")


def _drop_edges(pages: Sequence[Sequence[str]]) -> list[list[str]]:
    """Drop first and last lines that several pages share, whatever their numbers, and page numbers."""
    edges = Counter(key for page in pages for key in {_key(page[at]) for at in _edges(page)})
    repeated = {key for key, number in edges.items() if number >= _MIN_PAGES}
    kept: list[list[str]] = []
    for page in pages:
        dropped = {at for at in _edges(page) if _key(page[at]) in repeated or _PAGE_NUMBER.fullmatch(page[at])}
        kept.append([line for at, line in enumerate(page) if at not in dropped])
    return kept


def _edges(page: Sequence[str]) -> list[int]:
    n_lines = len(page)
    return [at for at in range(n_lines) if at < _EDGE_LINES or at >= n_lines - _EDGE_LINES]


def _key(line: str) -> str:
    return _NUMBER.sub("#", line)


def _join_lines(lines: Sequence[str], usual: float) -> Iterator[str]:
    """A paragraph ends with a stop on a short line, or with a short line before a capital or digit."""
    pending = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if _DIVIDED.search(line) and following[:1].islower():
            pending += line[:-1]
            continue
        pending += line + " "
        is_short = len(line) < _SHORT * usual
        if not following or (is_short and (line.endswith(_STOPS) or not following[:1].islower())):
            yield pending
            pending = ""
    yield pending
