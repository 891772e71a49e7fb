"""Similarity scores by word frequency: the pairs of each dataset in thirds, by the count of their rarer word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stillvec.evaluation.evaluation_report import ScoredPairs
from stillvec.evaluation.intervals import Estimate, Resampling, spearman
from stillvec.evaluation.score_table import average_independent
from stillvec.vectors import WordVectors

THIRDS = ("rare", "middle", "frequent")
_MIN_PAIRS = 10  # per third


@dataclass(frozen=True)
class FrequencyBand:
    """The pairs of one third: the median count of the rarer word, and the mean ρ of each set over datasets."""

    median: float
    n_pairs: int
    values: Mapping[str, Estimate]


def score_by_frequency(
    datasets: Sequence[ScoredPairs], sets: Mapping[str, WordVectors], names: Sequence[str]
) -> list[FrequencyBand]:
    """Rare, middle and frequent words, counted in the largest corpus among the sets.

    Nothing where no set has counts, or no dataset has enough pairs that all `names` cover.
    """
    with_counts = [vectors for vectors in sets.values() if vectors.vocabulary.counts.any()]
    if not with_counts:
        return []
    reference = max(with_counts, key=lambda vectors: int(vectors.vocabulary.counts.sum()))
    resampling = Resampling(500)
    scores: list[list[dict[str, Estimate]]] = [[], [], []]
    counts: list[list[float]] = [[], [], []]
    for pairs in datasets:
        common = pairs.common_rows(names)
        if len(common) < 3 * _MIN_PAIRS:
            continue
        rarer = np.array([min(_count(reference, word) for word in pairs.texts[row]) for row in common])
        for at, third in enumerate(np.array_split(np.argsort(rarer, kind="stable"), 3)):
            rows = common[third]
            gold = pairs.gold[rows]
            values = {name: resampling.correlation(spearman, gold, pairs.cosines[name][rows]) for name in names}
            if all(np.isfinite(estimate.value) for estimate in values.values()):
                scores[at].append(values)
            counts[at] += rarer[third].tolist()
    if not all(scores):
        return []
    return [
        FrequencyBand(
            float(np.median(band_counts)),
            len(band_counts),
            {name: average_independent([values[name] for values in band]) for name in names},
        )
        for band, band_counts in zip(scores, counts, strict=True)
    ]


def _count(vectors: WordVectors, word: str) -> int:
    row = vectors.vocabulary.row(word)
    return 0 if row is None else int(vectors.vocabulary.counts[row])
