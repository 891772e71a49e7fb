"""Pairs of words of a field, to be rated: no set of vectors is favoured, and all degrees of similarity occur.

Words are characteristic of the corpus: by residual inverse document frequency (Church & Gale 1995), how much rarer the
paragraphs of a word are than those of a word that is spread at random; all sets must have them. A third of the pairs is
near in the corpus (alike contexts, or half-way down that list), a third is near by one of the sets, the same number of
each, and a third is drawn at random. Words that begin with the same four letters are no pair: anyone can rate them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.evaluation.cooccurrence import read_contexts
from stillvec.evaluation.intervals import Floats, Rows
from stillvec.heads.lookup import Lookup
from stillvec.numerics import unit_rows
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.function_words import find_function_words
from stillvec.vocabulary.segmenters import SPACES, join_segmenters

Pair = tuple[str, str]
_PARAGRAPHS = 4096  # per batch
_MIN_PARAGRAPHS = 5  # that contain a word
_MAX_SHARE = 0.1  # of the paragraphs; above are function words
_WORDS_PER_PAIR = 2
_N_CONTEXTS = 3000  # the most frequent words, which are contexts
_NEAR = 3  # places of a list that count as near
_LETTERS = 4
_WINDOW = 5


def propose_pairs(corpus: Corpus, sets: Sequence[WordVectors], n_pairs: int = 100, seed: int = 0) -> list[Pair]:
    """Pairs of characteristic words of a corpus, in random order."""
    segmenter = join_segmenters(*(vectors.vocabulary.segmenter for vectors in sets))
    n_words = _WORDS_PER_PAIR * n_pairs
    words = find_characteristic_words(corpus.paragraphs(), _common_words(sets), n_words, segmenter)
    if len(words) < 10:
        what = f"10 words or more that {_MIN_PARAGRAPHS} paragraphs contain and all vectors have"
        raise UsageError.expected(what, len(words), cure="give more text, or vectors made from it")
    tables = [_corpus_cosines(corpus, words, sets[0]), *(_set_cosines(vectors, words) for vectors in sets)]
    generator = np.random.default_rng(seed)
    sources = [_near_pairs(tables[0], generator), _middle_pairs(tables[0], generator)]
    thirds = [(n_pairs + 5) // 6, n_pairs // 6]
    for table in tables[1:]:
        sources.append(_near_pairs(table, generator))
        thirds.append(-(-n_pairs // (3 * len(sets))))
    sources.append(_random_pairs(len(words), generator))
    thirds.append(n_pairs)  # the rest
    chosen = _choose(words, sources, thirds, n_pairs)
    order = generator.permutation(len(chosen))
    return [chosen[at] if generator.random() < 0.5 else chosen[at][::-1] for at in order]


def find_characteristic_words(
    paragraphs: Iterable[str], words: Sequence[str], n_words: int, segmenter: str = SPACES
) -> list[str]:
    """The words of highest residual IDF times the logarithm of the paragraphs that contain them, at most a tenth.

    -log2(d / D) + log2(1 - exp(-c / D)), of a word with c occurrences in d of D paragraphs
    """
    matcher = WordMatcher(Vocabulary(words, segmenter=segmenter), lazy=True)
    counts, containing, n_paragraphs = np.zeros(len(words)), np.zeros(len(words)), 0
    stream = iter(paragraphs)
    while batch := [*islice(stream, _PARAGRAPHS)]:
        rows, text = (array.astype(np.int64) for array in matcher.match_rows(batch))
        rows, text = rows[rows >= 0], text[rows >= 0]
        counts += np.bincount(rows, minlength=len(words))
        containing += np.bincount(np.unique(rows * len(batch) + text) // len(batch), minlength=len(words))
        n_paragraphs += len(batch)
    seen = np.flatnonzero((containing >= _MIN_PARAGRAPHS) & (containing <= _MAX_SHARE * n_paragraphs))
    spread = 1 - np.exp(-counts[seen] / n_paragraphs)
    residual = np.log2(spread * n_paragraphs / containing[seen])
    best = np.argsort(-residual * np.log2(containing[seen]), kind="stable")[:n_words]
    return [words[at] for at in seen[best]]


def _common_words(sets: Sequence[WordVectors]) -> list[str]:
    """Words of letters only that all sets have, without function words, in the order of the first."""
    least = _LETTERS if sets[0].vocabulary.segmenter == SPACES else _LETTERS // 2
    left_out = find_function_words(sets[0].words)
    shared = [word for word in sets[0].words if word.isalpha() and len(word) >= least and word.lower() not in left_out]
    known = np.logical_and.reduce([Lookup(vectors).rows(shared) >= 0 for vectors in sets]) if shared else ()
    return [word for word, usable in zip(shared, known, strict=True) if usable]


def _corpus_cosines(corpus: Corpus, words: Sequence[str], vectors: WordVectors) -> Floats:
    order = np.argsort(-vectors.vocabulary.counts, kind="stable")[:_N_CONTEXTS]
    contexts = [*dict.fromkeys([*words, *(vectors.words[row] for row in order)])]
    rows = read_contexts(corpus.sentences(), contexts, _WINDOW, vectors.vocabulary.segmenter).rows[: len(words)]
    return _without_diagonal((rows @ rows.T).toarray())


def _set_cosines(vectors: WordVectors, words: Sequence[str]) -> Floats:
    units = unit_rows(vectors[words]).astype(np.float64)
    return _without_diagonal(units @ units.T)


def _without_diagonal(cosines: NDArray[Any]) -> Floats:
    np.fill_diagonal(cosines, -np.inf)
    return np.asarray(cosines)


def _near_pairs(cosines: Floats, generator: np.random.Generator) -> Iterator[tuple[int, int]]:
    """A word and one of its nearest, in random order of the words, as long as there are any."""
    order = np.argsort(-cosines, axis=1, kind="stable")
    return _draw(order[:, :_NEAR], generator)


def _middle_pairs(cosines: Floats, generator: np.random.Generator) -> Iterator[tuple[int, int]]:
    """A word and one from the second eighth of its list: related more than at random."""
    n = len(cosines)
    order = np.argsort(-cosines, axis=1, kind="stable")
    return _draw(order[:, max(1, n // 8) : max(2, n // 4)], generator)


def _draw(lists: Rows, generator: np.random.Generator) -> Iterator[tuple[int, int]]:
    for place in generator.permutation(lists.size).tolist():
        word, at = divmod(place, lists.shape[1])
        yield word, int(lists[word, at])


def _random_pairs(n: int, generator: np.random.Generator) -> Iterator[tuple[int, int]]:
    for _ in range(100 * n):
        a, b = generator.integers(n, size=2).tolist()
        yield a, b


def _choose(
    words: Sequence[str], sources: Sequence[Iterator[tuple[int, int]]], quotas: Sequence[int], n_pairs: int
) -> list[Pair]:
    """New pairs from each source up to its quota; a word is in few of them, so that many words are rated."""
    most = 2 + 2 * n_pairs // len(words)
    chosen: dict[frozenset[str], Pair] = {}
    times: Counter[str] = Counter()
    for source, quota in zip(sources, quotas, strict=True):
        wanted = min(len(chosen) + quota, n_pairs)
        for a, b in source:
            pair = words[a], words[b]
            if len(chosen) >= wanted:
                break
            if (
                pair[0][:_LETTERS] != pair[1][:_LETTERS]
                and frozenset(pair) not in chosen
                and max(map(times.__getitem__, pair)) < most
            ):
                chosen[frozenset(pair)] = pair
                times.update(pair)
    return [*chosen.values()]
