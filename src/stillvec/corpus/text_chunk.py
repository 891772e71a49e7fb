"""Texts on their way to the teacher."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from stillvec.vocabulary import WordSpans


class TextUnit(Enum):
    """What the texts of a chunk are."""

    SENTENCES = "sentences"
    PARAGRAPHS = "paragraphs"  # to be split into sentences
    WHOLE_PARAGRAPHS = "whole paragraphs"  # read as one text each; each word knows its sentence


class StreamPosition(NamedTuple):
    """How much of a stream of texts was given, of how much, in characters."""

    done: int = 0
    total: int = 0  # estimated until the end of the stream is known; 0: not known


START = StreamPosition()


@dataclass(frozen=True)
class TextChunk:
    """Texts that are tokenized together."""

    texts: Sequence[str]
    spans: WordSpans | None = None  # the words of interest; None: all words, located by the batch builder
    unit: TextUnit = TextUnit.SENTENCES
    position: StreamPosition = START  # of its end
