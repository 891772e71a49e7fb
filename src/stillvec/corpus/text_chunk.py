"""Texts on their way to the teacher."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from stillvec.vocabulary import WordSpans


class TextUnit(Enum):
    """What the texts of a chunk are."""

    SENTENCES = "sentences"
    PARAGRAPHS = "paragraphs"  # to be split into sentences
    WHOLE_PARAGRAPHS = "whole paragraphs"  # read as one text each; each word knows its sentence


@dataclass(frozen=True)
class TextChunk:
    """Texts that are tokenized together."""

    texts: Sequence[str]
    spans: WordSpans | None = None  # the words of interest; None: all words, located by the batch builder
    unit: TextUnit = TextUnit.SENTENCES
    corpus_position: int = 0  # words of the corpus up to the end of the chunk, read or skipped; 0: none are skipped
