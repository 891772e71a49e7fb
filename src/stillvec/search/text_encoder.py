"""Texts to unit vectors: the mean of their words, weighted by smooth inverse frequency (Arora et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import unit_rows
from stillvec.refinement.sif import frequencies, weigh_words
from stillvec.vectors import WordVectors

_A = 1e-3  # of SIF, chosen on development queries (benchmarks/search.py)
_SALIENT = 0.2  # share of the largest weight from which a word of a query is worth highlighting


class TextEncoder:
    """Encodes passages and queries in the same way; without counts, frequencies are estimated by rank."""

    def __init__(self, vectors: WordVectors) -> None:
        self.vectors = vectors
        self.frequencies = "counts" if vectors.vocabulary.counts.any() else "rank"

    @cached_property
    def _weights(self) -> NDArray[np.float32]:
        return weigh_words(self.vectors, _A)  # (V,)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, D); zero for texts without a known word."""
        return np.asarray(unit_rows(self.vectors.encode(texts, weights=self._weights)), np.float32)

    def select_salient(self, words: Iterable[str]) -> list[str]:
        """The different words without those that are much more frequent than the rarest known one."""
        rows = {word: self.vectors.vocabulary.row(word) for word in words}
        shares = frequencies(self.vectors.vocabulary, "counts" if self.frequencies == "counts" else "rank")
        weights = {word: _A / (_A + float(shares[row])) for word, row in rows.items() if row is not None}
        least = _SALIENT * max(weights.values(), default=0)
        return [word for word in rows if weights.get(word, 1) >= least]

    def describe(self) -> dict[str, object]:
        return {"weighting": "sif", "a": _A, "frequencies": self.frequencies}
