"""Documents to passages: whole documents, paragraphs, or windows of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from stillvec.corpus import split_sentences
from stillvec.corpus.plain_text import split_paragraphs
from stillvec.errors import UsageError

PassageUnit = str | int  # "document", "paragraph" or the number of sentences
DEFAULT_PASSAGES = "paragraph"
_LINE_BREAK = re.compile(r"[\r\n]")
_MAX_SENTENCES = 10_000
_MIN_PARAGRAPH = 60  # characters; a shorter one, such as a heading, is joined with the next
_MAX_PARAGRAPH = 2000  # characters; a longer one is cut between sentences


def check_passages(unit: PassageUnit) -> PassageUnit:
    """The unit with a number as `int`; an error if it is none."""
    if unit in ("document", "paragraph"):
        return unit
    try:
        number = int(unit)
    except (ValueError, TypeError, OverflowError):  # of a manifest too
        number = 0
    if not 1 <= number <= _MAX_SENTENCES:
        what = f"'document', 'paragraph' or a number of sentences from 1 to {_MAX_SENTENCES:,}"
        raise UsageError.expected(what, repr(unit), where="passages")
    return number


def split_passages(text: str, unit: PassageUnit) -> list[str]:
    """The passages of a document, stripped and not empty."""
    if unit == "document" or (unit == "paragraph" and len(text) <= _MAX_PARAGRAPH and not _LINE_BREAK.search(text)):
        text = text.strip()
        return [text] if text else []
    if unit == "paragraph":
        return _join_short(split_paragraphs(text, "auto"))
    sentences = (sentence for paragraph in split_paragraphs(text, "auto") for sentence in split_sentences(paragraph))
    passages = []
    while window := [*islice(sentences, int(unit))]:
        passages.append(" ".join(window))
    return passages


def _join_short(paragraphs: Iterable[str]) -> list[str]:
    """Paragraphs with short ones joined to the next (the last to the one before), and long ones cut."""
    passages: list[str] = []
    pending = ""
    for paragraph in paragraphs:
        pending = f"{pending}\n{paragraph}" if pending else paragraph
        if len(pending) < _MIN_PARAGRAPH:
            continue
        passages += _cut(pending)
        pending = ""
    if pending and passages and len(passages[-1]) + len(pending) < _MAX_PARAGRAPH:
        passages[-1] = f"{passages[-1]}\n{pending}"
    elif pending:
        passages.append(pending)
    return passages


def _cut(paragraph: str) -> list[str]:
    if len(paragraph) <= _MAX_PARAGRAPH:
        return [paragraph]
    passages = [""]
    for sentence in split_sentences(paragraph):
        if passages[-1] and len(passages[-1]) + len(sentence) >= _MAX_PARAGRAPH:
            passages.append("")
        passages[-1] = f"{passages[-1]} {sentence}".strip()
    return passages
