"""Plain text: a paragraph is a line, or a block of hard-wrapped lines between blank lines."""

import re
import statistics
from collections.abc import Iterator
from itertools import chain

from stillvec.corpus.decoding import MAX_PARAGRAPH, cut, decode, normalize, split_lines
from stillvec.corpus.reader_input import HEAD_BYTES, CorpusSettings, OpenedFile, ParagraphMode, ReadStats

_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_WIDTH = 100  # characters of a hard-wrapped line
_MIN_WIDTH = 30  # shorter lines are lists or verse
_STOPS = tuple(".!?:;…\"”'’)]।。！？؟۔")


def read_plain(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    texts = decode(opened, stats)
    sample = _sample(texts, settings.paragraphs)
    yield from _paragraphs(split_lines(chain([sample], texts), MAX_PARAGRAPH), settings.paragraphs, sample)


def is_wrapped(opened: OpenedFile, settings: CorpusSettings) -> bool:
    """Whether the paragraphs of a file are blocks of lines."""
    return _are_blocks(settings.paragraphs, _sample(decode(opened, ReadStats()), settings.paragraphs))


def split_paragraphs(text: str, mode: ParagraphMode) -> Iterator[str]:
    """Yield the paragraphs of a text in memory."""
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate ("\\ud800" in JSON), which tokenizers refuse
        text = _SURROGATE.sub("\ufffd", text)
    text = normalize(text)
    yield from _paragraphs(split_lines([text], MAX_PARAGRAPH), mode, text)


def is_hard_wrapped(sample: str) -> bool:
    """Whether lines were broken to fit a width: blank lines separate blocks of lines of similar length."""
    stripped = "\n".join(line.strip() for line in sample[:HEAD_BYTES].split("\n"))
    blocks = [block.split("\n") for block in stripped.split("\n\n") if block.strip()]
    inner = [line for block in blocks for line in block[:-1] if line]
    if len(blocks) < 2 or len(inner) < 2:
        return False
    lengths = [len(line) for line in inner]
    width = statistics.quantiles(lengths, n=10, method="inclusive")[-1]
    n_even = sum(0.7 * width <= length <= _MAX_WIDTH for length in lengths)
    n_open = sum(not line.endswith(_STOPS) for line in inner)
    return _MIN_WIDTH <= width <= _MAX_WIDTH and n_even > 0.7 * len(inner) and n_open > 0.5 * len(inner)


def _sample(texts: Iterator[str], mode: ParagraphMode) -> str:
    """The beginning of a text, to detect hard-wrapped lines in."""
    sample = ""
    while mode == "auto" and len(sample) < HEAD_BYTES and (text := next(texts, "")):
        sample += text
    return sample


def _are_blocks(mode: ParagraphMode, sample: str) -> bool:
    return mode == "blocks" or (mode == "auto" and is_hard_wrapped(sample))


def _paragraphs(short_lines: Iterator[str], mode: ParagraphMode, sample: str) -> Iterator[str]:
    """Yield stripped paragraphs, neither empty nor longer than `MAX_PARAGRAPH`."""
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
