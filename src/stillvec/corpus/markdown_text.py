"""Markdown as text, by `markdown-it-py`: without front matter, code blocks, link targets, tags and template calls.

Inline code is part of its sentence and stays. A template call inside a line stands for the text that it shows:
`{{domxref("Window.fetch", "fetch()")}}` is "fetch()"; a line of nothing but calls is dropped.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from stillvec.corpus.decoding import decode
from stillvec.corpus.html_text import clean_paragraphs, html_paragraphs
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats

_PIECE = 1 << 20  # characters that are parsed together; a longer text is divided at headings
_FRONT_MATTER = re.compile(r"\A\s*(---|\+\+\+)[ \t]*\n.*?\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_CALL = r"\{\{[^{}\n]{0,1000}\}\}|\{%[^%\n]{0,1000}%\}"
_CALLS_ALONE = re.compile(rf"^[ \t>*-]*(?:{_CALL})(?:\s*(?:{_CALL}))*[ \t]*$", re.MULTILINE)
_ANY_CALL = re.compile(_CALL)
_SHOWN = re.compile(r"""\{\{\s*[\w.-]+\s*\(\s*(["'])(.*?)\1\s*(?:,\s*(["'])(.*?)\3)?""")
_MARKS = re.compile(r"\[![A-Za-z]+\]|\[\^[^\]\s]{1,40}\]:?|\{#[\w:.-]+\}|^:{3,}.*$", re.MULTILINE)  # notes, ids
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


def read_markdown(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    for number, piece in enumerate(_divide(decode(opened, stats))):
        yield from markdown_paragraphs(piece if number else _FRONT_MATTER.sub("", piece, count=1), opened.name)


def markdown_paragraphs(text: str, name: str) -> Iterator[str]:
    """Yield the paragraphs, headings, list items and table cells of a text."""
    text = _MARKS.sub(" ", _ANY_CALL.sub(_show_call, _CALLS_ALONE.sub("", text)))
    for token in _parser().parse(text):
        if token.type == "inline":
            yield from clean_paragraphs(_join_inline(token.children or ()))
        elif token.type == "html_block":
            yield from html_paragraphs([token.content], name)


def _divide(texts: Iterable[str]) -> Iterator[str]:
    pending = ""
    for text in texts:
        pending += text
        while len(pending) > 2 * _PIECE:
            end = _find_cut(pending)
            yield pending[:end]
            pending = pending[end:]
    yield pending


def _find_cut(text: str) -> int:
    """Before a heading that is not inside a code block, if there is one, else anywhere."""
    end = 2 * _PIECE
    while (end := text.rfind("\n#", _PIECE // 2, end)) > 0:
        if len(_FENCE.findall(text, 0, end)) % 2 == 0:
            return end
    return 2 * _PIECE


def _show_call(call: re.Match[str]) -> str:
    shown = _SHOWN.match(call[0])
    return (shown[4] or shown[2]) if shown else ""


def _join_inline(children: Iterable[Any]) -> str:
    pieces: list[str] = []
    in_address = False
    for child in children:
        if child.type in ("link_open", "link_close"):
            in_address = child.type == "link_open" and child.info == "auto"
        elif child.type in ("text", "code_inline"):
            pieces.append("" if in_address else child.content)
        elif child.type in ("softbreak", "hardbreak") or child.content[:3].lower() == "<br":
            pieces.append(" ")
    return "".join(pieces)


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])
