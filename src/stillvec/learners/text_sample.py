"""How much text a stage of the pass will read, estimated from the texts of some words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from stillvec.corpus.text_chunk import TextChunk
from stillvec.encoding import NO_TEXT, TextSize
from stillvec.teachers import SubwordTokenizer
from stillvec.vocabulary import Vocabulary

_SAMPLE = 4096  # words; fewer are measured completely


def estimate_size(
    make_texts: Callable[[Vocabulary], Iterable[TextChunk]],
    vocabulary: Vocabulary,
    chosen: NDArray[np.bool_],
    tokenizer: SubwordTokenizer,
) -> TextSize:
    """The size of the texts that are made for the chosen words, from those of every n-th one."""
    rows = np.flatnonzero(chosen)
    sample = rows[:: -(-len(rows) // _SAMPLE) or 1].tolist()
    if not sample:
        return NO_TEXT
    words = vocabulary.like([vocabulary.words[row] for row in sample])
    return measure_texts(make_texts(words), tokenizer).scale(len(rows) / len(sample))


def measure_texts(chunks: Iterable[TextChunk], tokenizer: SubwordTokenizer) -> TextSize:
    """The exact size of texts, each read as a whole."""
    lengths = [tokenizer.encode(chunk.texts).lengths for chunk in chunks]
    return TextSize(sum(int(part.sum()) for part in lengths), sum(int((part > 0).sum()) for part in lengths))
