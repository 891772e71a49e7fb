"""Dependency trees over known words, as arrays in memory."""

from collections import Counter
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.errors import CorpusError

_PARSES = 10_000  # between progress events


class Trees(NamedTuple):
    words: NDArray[np.int64]  # (W,) rows of the vocabulary, -1 for an unknown word
    heads: NDArray[np.int64]  # (W,) positions in the sentence, -1 for a root
    relations: NDArray[np.int64]  # (W,) to the head, numbers below `n_relations`
    ends: NDArray[np.int64]  # (S,) of the sentences
    n_relations: int


def read_trees(corpus: EncodedCorpus, n_relations: int) -> Generator[int, None, Trees]:
    """All trees, 24 bytes per word; the rarest relations are merged into one; yields the number of parses read."""
    words: list[NDArray[np.int64]] = []
    heads: list[NDArray[np.int64]] = []
    relations: list[NDArray[np.int64]] = []
    ends: list[int] = []
    numbers: dict[str, int] = {}
    counts: Counter[int] = Counter()
    for n_parses, parse in enumerate(corpus.parses(), 1):
        rows = corpus.rows_of(parse)
        labels = [numbers.setdefault(relation, len(numbers)) for relation in parse.relations]
        counts.update(labels)
        words.append(np.array(rows, np.int64))
        heads.append(np.array(parse.heads, np.int64))
        relations.append(np.array(labels, np.int64))
        ends.append((ends[-1] if ends else 0) + len(rows))
        if n_parses % _PARSES == 0:
            yield n_parses
    if not words:
        raise CorpusError("The corpus has no parses; give CoNLL-U files with sentences.", code="no-parses")
    rank = {number: place for place, (number, _) in enumerate(counts.most_common())}
    merged = np.array([min(rank[number], n_relations - 1) for number in range(len(numbers))], np.int64)
    return Trees(
        np.concatenate(words),
        np.concatenate(heads),
        merged[np.concatenate(relations)],
        np.array(ends),
        min(n_relations, len(numbers)),
    )
