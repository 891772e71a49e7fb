"""What is in the lists of nearest words: inflections of the word, words that are in every list, words of the corpus.

Over a sample of frequent words, of the k nearest words of each among all words:

    same-start    the share that begins with the same four letters
    same-stem     the share with the same stem (Snowball)
    top-hub       the share of lists that contain the word that is in most lists
    hubness       the skewness of N_k, how many lists a word is in (Radovanović et al. 2010); 0: none is preferred
    cooccurrence  with corpus=FILE: the mean percentile of the neighbours among words of like frequency, ordered by how
                  alike their contexts in the corpus are (`cooccurrence.py`); 50: random words, 100: none are more alike

hubness and cooccurrence are measured among the `frequent` most frequent words, each of which has a list. Of all but
cooccurrence less is better, down to what the text itself has: `-random` is the same for random vectors of this
dimension, which no one wants either. So these scores do not count in the mean over tasks.

Items are words of the vectors: of those that all sets have, with letters only and no fewer than four, `sample` of the
`frequent` most frequent, at random. Interval: percentile bootstrap over these words, Wilson's for top-hub.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.evaluation.answer_cache import digest_files
from stillvec.evaluation.cooccurrence import WordContexts, rank_neighbours, read_contexts
from stillvec.evaluation.intervals import Estimate, Floats, Mask, Resampling, Rows, mean_estimate, percentiles
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.heads.lookup import Lookup
from stillvec.numerics import nearest_rows, unit_rows
from stillvec.registry import check_least
from stillvec.vectors import WordVectors
from stillvec.vocabulary.stems import stem_words

_NO_STEMS = "none"


@dataclass(frozen=True)
class NeighbourItems(Items):
    frequent: tuple[str, ...] = field(default=(), kw_only=True)  # (m,) among which all have a list


@dataclass(frozen=True)
class Crowding(Task):
    sample: int = 1000  # at most so many words, drawn at random
    frequent: int = 10_000  # from so many of the most frequent words
    k: int = 10  # nearest words
    letters: int = 4  # of a shared beginning, and the least length of a word
    language: str = "english"  # of the stems, a Snowball algorithm; none: no stems
    corpus: str = ""  # a file or folder of text, for cooccurrence
    window: int = 5  # words on each side, for cooccurrence
    seed: int = 0  # of the sample, and of random vectors

    item_source: ClassVar[str] = "frequent words"
    averaged: ClassVar[bool] = False
    lower: ClassVar[tuple[str, ...]] = ("same-start", "same-stem", "top-hub", "hubness")
    unscaled: ClassVar[tuple[str, ...]] = ("hubness", "hubness-random")
    controls: ClassVar[tuple[str, ...]] = ("-random",)
    max_difference: ClassVar[float] = np.inf  # of skewness
    summary: ClassVar[str] = "the lists of nearest words"

    def __post_init__(self) -> None:
        check_least(self, sample=2, frequent=3, k=1, letters=1, window=1, seed=0)
        if self.corpus and not self._corpus.exists():
            raise UsageError.not_found(self._corpus, "a file or folder of text for the setting 'corpus'")

    @property
    def _corpus(self) -> Path:
        return Path(self.corpus).expanduser()

    def own_data(self) -> tuple[Path, ...]:
        return (self._corpus,) if self.corpus else ()

    def choose_items(self, sets: Sequence[WordVectors]) -> NeighbourItems:
        """Words that all sets have, by their counts in the first."""
        if self.language != _NO_STEMS:
            self._stems([])  # fail before the work if the language is not known
        first = sets[0].vocabulary
        order = np.argsort(-first.counts, kind="stable").tolist()
        common = [word for row in order if all((word := first.words[row]) in other.vocabulary.index for other in sets)]
        candidates = common[: 2 * self.frequent]  # some may have zero vectors
        known = np.logical_and.reduce([Lookup(vectors).rows(candidates) >= 0 for vectors in sets])
        frequent = tuple(word for word, usable in zip(candidates, known, strict=True) if usable)[: self.frequent]
        able = [word for word in frequent if word.isalpha() and len(word) >= self.letters]
        if len(able) < 2 or len(frequent) <= self.k:
            what = f"more than {self.k} common words, two of them with {self.letters} letters or more"
            raise UsageError.expected(what, f"{len(frequent)} and {len(able)}")
        drawn = np.random.default_rng(self.seed).permutation(len(able))[: self.sample]
        texts = tuple((able[at],) for at in np.sort(drawn).tolist())
        return NeighbourItems(texts, np.ones(len(texts)), frequent=frequent)

    def answer_steps(self, lookup: Lookup, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, NeighbourItems)
        vectors = lookup.vectors
        noise = np.random.default_rng(self.seed).standard_normal((len(vectors), vectors.dim), np.float32)
        values: dict[str, NDArray[Any]] = {}
        for number, (ending, matrix) in enumerate([("", vectors.matrix), ("-random", noise)]):
            found = self._measure(WordVectors(vectors.vocabulary, matrix), items)
            values |= {f"{metric}{ending}": array for metric, array in found.items()}
            yield (number + 1) / 2
        return Answers(np.ones(len(items), bool), values)

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        estimates: dict[str, Estimate] = {}
        for metric, values in answers.values.items():
            estimate = _estimate_skewness if metric.startswith("hubness") else mean_estimate
            estimates[metric] = estimate(values[chosen], resampling)
        return estimates

    def summarize(self, vectors: WordVectors) -> dict[str, float]:
        """The mean of each metric over a sample of the words; empty if there are too few words."""
        try:
            items = self.choose_items([vectors])
        except UsageError:
            return {}
        values = self._measure(vectors, items)
        scores = {metric: float(array.mean()) for metric, array in values.items() if metric != "hubness"}
        return scores | {"hubness": float(_skewness(np.ones((1, len(items))), values["hubness"])[0])}

    def _measure(self, vectors: WordVectors, items: NeighbourItems) -> dict[str, NDArray[Any]]:
        """Metric → a value per word (n,); of hubness how many lists it is in."""
        words = [text[0] for text in items.texts]
        lists = [[word for word, _ in near] for near in vectors.nearest_batch(words, self.k)]
        values: dict[str, NDArray[Any]] = {"same-start": _share_equal(words, lists, self._starts)}
        if self.language != _NO_STEMS:
            values["same-stem"] = _share_equal(words, lists, self._stems)
        values["top-hub"] = _contain_hub(lists)
        place = {word: row for row, word in enumerate(items.frequent)}
        rows = np.array([place[word] for word in words])
        nearest = nearest_rows(unit_rows(vectors[items.frequent]), self.k)  # (m, k)
        values["hubness"] = np.bincount(nearest.ravel(), minlength=len(nearest))[rows].astype(np.float64)
        if self.corpus:
            segmenter = vectors.vocabulary.segmenter
            contexts = _read_corpus(self._corpus, digest_files(self._corpus), items.frequent, self.window, segmenter)
            values["cooccurrence"] = rank_neighbours(contexts, rows, nearest[rows])
        return values

    def _starts(self, words: Sequence[str]) -> list[str]:
        return [word[: self.letters].lower() for word in words]

    def _stems(self, words: Sequence[str]) -> list[str]:
        return stem_words(words, self.language)


def _share_equal(
    words: Sequence[str], lists: Sequence[Sequence[str]], key: Callable[[Sequence[str]], list[str]]
) -> Floats:
    """The share of each list whose words have the same key as the word itself (n,)."""
    distinct = [*dict.fromkeys([*words, *chain.from_iterable(lists)])]
    keys = dict(zip(distinct, key(distinct), strict=True))
    return np.array(
        [np.mean([keys[near] == keys[word] for near in nearest]) for word, nearest in zip(words, lists, strict=True)]
    )


def _contain_hub(lists: Sequence[Sequence[str]]) -> Mask:
    """Which lists contain the word that is in most of them (n,); of equals the first."""
    counts = Counter(chain.from_iterable(lists))
    hub = max(counts, key=counts.__getitem__)
    return np.array([hub in nearest for nearest in lists])


def _estimate_skewness(counts: Floats, resampling: Resampling) -> Estimate:
    """The skewness with the percentile interval of its resamples."""
    n = len(counts)
    if not n:
        return Estimate(np.nan, np.nan, np.nan)
    blocks = [_skewness(weights, counts) for weights in resampling.weights(n)]
    return Estimate(float(_skewness(np.ones((1, n)), counts)[0]), *percentiles(blocks))


def _skewness(weights: Floats, counts: Floats) -> Floats:
    """The third standardized moment of counts (n,) in each resample (R,); 0 where they are all equal."""
    n = weights.sum(axis=1)
    centred = counts - (weights @ counts / n)[:, None]  # (R, n)
    second, third = ((weights * centred**power).sum(axis=1) / n for power in (2, 3))
    return np.asarray(np.divide(third, second**1.5, out=np.zeros(len(n)), where=second > 1e-12))


@lru_cache(maxsize=1)
def _read_corpus(path: Path, content: str, words: tuple[str, ...], window: int, segmenter: str) -> WordContexts:
    """The contexts of words in a corpus, which all sets share; `content` is its digest."""
    return read_contexts(Corpus(path).sentences(), words, window, segmenter)
