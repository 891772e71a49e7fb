"""What a corpus says about pairs of words: the cosine of their PPMI rows (Bullinaria & Levy 2007).

    PPMI(w, c) = max(0, log(n(w, c) N / (n(w) n(c)^0.75))),   N = Σ_c n(c)^0.75

n(w, c) counts how often c stands at most `window` words from w in a sentence. The power 0.75 lowers the weight of rare
contexts (Levy et al. 2015). Nothing is trained, and no teacher reads the text.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from stillvec.evaluation.intervals import Floats, Rows
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.segmenters import SPACES

_SENTENCES = 8192  # per batch
_QUERIES = 256  # per batch
_ALIKE = 50  # words on each side in the order of frequency
_SMOOTHING = 0.75  # power of the counts of contexts


class WordContexts(NamedTuple):
    """What a corpus says about words."""

    rows: Any  # (n, n) sparse: the PPMI row of each word, of unit length; zero if it does not occur
    counts: Floats  # (n,) how many words stand near each


def read_contexts(sentences: Iterable[str], words: Sequence[str], window: int, segmenter: str = SPACES) -> WordContexts:
    """The contexts of words in sentences; contexts are the same words."""
    from scipy.sparse import csr_array, diags_array

    counts = count_pairs(sentences, words, window, segmenter)
    of_word = counts.sum(axis=1)
    of_context = of_word**_SMOOTHING
    table = counts.tocoo()
    expected = of_word[table.row] * of_context[table.col] / max(of_context.sum(), 1.0)
    weights = np.maximum(np.log(table.data / expected), 0)
    rows = csr_array((weights, (table.row, table.col)), shape=counts.shape)
    lengths = np.sqrt((rows * rows).sum(axis=1))
    return WordContexts(csr_array(diags_array(1 / np.where(lengths > 0, lengths, 1)) @ rows), of_word)


def count_pairs(sentences: Iterable[str], words: Sequence[str], window: int, segmenter: str = SPACES) -> Any:
    """How often two words stand at most `window` words apart in a sentence, in either order: sparse (n, n)."""
    from scipy.sparse import csr_array

    n = len(words)
    matcher = WordMatcher(Vocabulary(words, segmenter=segmenter), lazy=True)
    counts = csr_array((n, n))
    stream = iter(sentences)
    while batch := [*islice(stream, _SENTENCES)]:
        rows, sentence = matcher.match_rows(batch)
        for distance in range(1, min(window, len(rows) - 1) + 1):
            left, right = rows[:-distance], rows[distance:]
            near = (left >= 0) & (right >= 0) & (sentence[:-distance] == sentence[distance:])
            pairs = csr_array((np.ones(int(near.sum())), (left[near], right[near])), shape=(n, n))
            counts = counts + pairs
    return counts + counts.T


def rank_neighbours(contexts: WordContexts, queries: Rows, nearest: Rows) -> Floats:
    """For each query (q,) the mean percentile of its neighbours (q, k) among words of like frequency (q,).

    The percentile of a neighbour is the share of the hundred words nearest to it in frequency whose cosine with the
    query is lower; equal cosines count half, so random neighbours of any frequency have 0.5. Among all words frequent
    neighbours would have more, whatever they are: their rows have something in common with every other.
    """
    n = len(contexts.counts)
    order = np.argsort(-contexts.counts, kind="stable")
    place = np.argsort(order)
    width = min(2 * _ALIKE + 1, n)
    percentiles = np.zeros(len(queries))
    for start in range(0, len(queries), _QUERIES):
        chosen, found = queries[start : start + _QUERIES], nearest[start : start + _QUERIES]
        cosines = (contexts.rows[chosen] @ contexts.rows.T).toarray().round(9)
        first = np.clip(place[found] - _ALIKE, 0, n - width)  # (q, k)
        like = order[first[..., None] + np.arange(width)]  # (q, k, width) words of like frequency
        others = (like != chosen[:, None, None]) & (like != found[..., None])
        query = np.arange(len(chosen))[:, None]
        values, own = cosines[query[..., None], like], cosines[query, found][..., None]
        lower = ((values < own) + 0.5 * (values == own)) * others
        percentiles[start : start + _QUERIES] = (lower.sum(axis=2) / others.sum(axis=2)).mean(axis=1)
    return percentiles
