"""Plain text: a paragraph is a line, or a block of hard-wrapped lines between blank ones."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from itertools import chain

from stillvec.corpus.decoding import MAX_PARAGRAPH, cut, decode, normalize, split_lines
from stillvec.corpus.opened_file import HEAD_BYTES, OpenedFile
from stillvec.corpus.read_settings import CorpusSettings, ParagraphMode, ReadStats

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_WIDEST = 100  # characters a hard-wrapped line may have
_NARROWEST = 30  # shorter ones are lists and verses rather than wrapped prose
_STOPS = tuple(".!?:;…\"”'’)]।。！？؟۔")


def read_plain(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """The paragraphs of a text file."""
    texts = decode(opened, stats)
    sample = _sample(texts, settings.paragraphs)
    yield from _paragraphs(split_lines(chain([sample], texts), MAX_PARAGRAPH), settings.paragraphs, sample)


def is_wrapped(opened: OpenedFile, settings: CorpusSettings) -> bool:
    """Whether the paragraphs of a file are blocks of lines."""
    return _are_blocks(settings.paragraphs, _sample(decode(opened, ReadStats()), settings.paragraphs))


def split_paragraphs(text: str, mode: ParagraphMode) -> Iterator[str]:
    """The paragraphs of a text that is already in memory: a field of a record, or a string of the user's."""
    try:
        text.encode()
    except UnicodeEncodeError:  # half a pair, as "\\ud800" in JSON gives it, which no tokenizer would take
        text = _HALF_PAIR.sub("\ufffd", text)
    text = normalize(text)
    yield from _paragraphs(split_lines([text], MAX_PARAGRAPH), mode, text)


def is_hard_wrapped(sample: str) -> bool:
    """Whether lines were broken to fit a width: blank lines stand between blocks of even lines."""
    blocks = [block.split("\n") for block in _strip_lines(sample).split("\n\n") if block.strip()]
    inner = [line for block in blocks for line in block[:-1] if line]
    if len(blocks) < 2 or len(inner) < 2:
        return False
    lengths = [len(line) for line in inner]
    width = statistics.quantiles(lengths, n=10, method="inclusive")[-1]
    even = sum(0.7 * width <= length <= _WIDEST for length in lengths)
    running_on = sum(not line.endswith(_STOPS) for line in inner)
    return _NARROWEST <= width <= _WIDEST and even > 0.7 * len(inner) and running_on > 0.5 * len(inner)


def _strip_lines(sample: str) -> str:
    return "\n".join(line.strip() for line in sample[:HEAD_BYTES].split("\n"))


def _sample(texts: Iterator[str], mode: ParagraphMode) -> str:
    """What is looked at to tell, taken from the beginning."""
    sample = ""
    while mode == "auto" and len(sample) < HEAD_BYTES and (text := next(texts, "")):
        sample += text
    return sample


def _are_blocks(mode: ParagraphMode, sample: str) -> bool:
    return mode == "blocks" or (mode == "auto" and is_hard_wrapped(sample))


def _paragraphs(short_lines: Iterator[str], mode: ParagraphMode, sample: str) -> Iterator[str]:
    """None is empty, and none is longer than the longest."""
    if not _are_blocks(mode, sample):
        return filter(None, map(str.strip, short_lines))
    return filter(None, map(str.strip, chain.from_iterable(map(cut, _blocks(short_lines)))))


def _blocks(all_lines: Iterator[str]) -> Iterator[str]:
    block: list[str] = []
    length = 0
    for line in map(str.strip, all_lines):
        if line:
            block.append(line)
            length += len(line) + 1
        if block and (not line or length > MAX_PARAGRAPH):
            *whole, rest = [" ".join(block)] if not line else cut(" ".join(block))
            yield from whole
            block, length = ([rest], len(rest)) if line else ([], 0)
            if not line:
                yield rest
    yield " ".join(block)
