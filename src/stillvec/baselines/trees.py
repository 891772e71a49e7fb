"""Dependency trees over known words, read once, held as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.errors import CorpusError

_PARSES = 10_000  # told at once


class Trees(NamedTuple):
    words: NDArray[np.int64]  # (W,) rows of the vocabulary, -1 for a word it does not have
    heads: NDArray[np.int64]  # (W,) from the beginning of the sentence, -1 for a root
    relations: NDArray[np.int64]  # (W,) to the head, a number below `labels`
    ends: NDArray[np.int64]  # (S,)
    labels: int


def read_trees(text: EncodedCorpus, labels: int) -> Generator[int, None, Trees]:
    """All trees, 24 bytes a word; relations but for the most frequent are one; yields the number of parses read."""
    words: list[NDArray[np.int64]] = []
    heads: list[NDArray[np.int64]] = []
    relations: list[NDArray[np.int64]] = []
    ends: list[int] = []
    numbers: dict[str, int] = {}
    met: Counter[int] = Counter()
    for read, parse in enumerate(text.parses(), 1):
        rows = text.rows_of(parse)
        found = [numbers.setdefault(relation, len(numbers)) for relation in parse.relations]
        met.update(found)
        words.append(np.array(rows, np.int64))
        heads.append(np.array(parse.heads, np.int64))
        relations.append(np.array(found, np.int64))
        ends.append((ends[-1] if ends else 0) + len(rows))
        if read % _PARSES == 0:
            yield read
    if not words:
        raise CorpusError("The corpus has no parses, only comments or nothing; give CoNLL-U with sentences in it.")
    rank = {number: place for place, (number, _) in enumerate(met.most_common())}
    few = np.array([min(rank[number], labels - 1) for number in range(len(numbers))], np.int64)
    kept = min(labels, len(numbers))
    return Trees(np.concatenate(words), np.concatenate(heads), few[np.concatenate(relations)], np.array(ends), kept)
