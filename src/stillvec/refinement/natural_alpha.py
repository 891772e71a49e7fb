"""Natural alpha embeddings (Volpi & Malagò 2020): words as tangent vectors on the manifold of models.

A model of words U and contexts V defines `p_w(χ) ∝ exp(u_w · v_χ)`. With a reference p0, `ΔV = V - Σ p0 v` and
the Fisher matrix `I = Σ p0 ΔV ΔVᵀ`, the word is `W(w) = I⁻¹ Σ_χ l(χ) ΔV_χ` with
`l = p0 (2/(1-α)) ((p_w/p0)^((1-α)/2) - 1)`, at α = 1 `p0 ln(p_w/p0)`. With α = 1 and a uniform reference W is U.
The limit of α → -∞ is `I⁻¹ ΔV` of the context with the largest p_w/p0, or the mean over the `top` largest.

U are the vectors. V is `contexts`, a .npy file with one row per word; by default the context table of the vectors
(`stillvec train --context-table`) or, for vectors without one, the vectors themselves. A step before this one drops the
table. The time is quadratic in the size of the vocabulary. Rows that would overflow are scaled down.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError, UsageError
from stillvec.files.numpy_file import map_numbers
from stillvec.numerics import principal_axes, raise_to_power
from stillvec.refinement.sif import frequencies
from stillvec.registry import check_least
from stillvec.vectors import WordVectors

_AT_ONCE = 1 << 22  # probabilities per block
_LARGEST = 30.0  # logarithm of the largest weight without scaling

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NaturalAlpha:
    SUMMARY: ClassVar[str] = "natural alpha embeddings"
    PAPERS: ClassVar[tuple[str, ...]] = ("volpi-2020",)

    alpha: Literal["limit"] | float = -1.0
    reference: Literal["uniform", "unigram", "counts"] = "uniform"  # the paper's 0, u, ud
    metric: Literal["identity", "fisher"] = "identity"  # metric of cosines of the result
    contexts: str | None = None
    plus: bool = False  # use u_w + v_w as the word
    top: int = 1  # in the limit: number of contexts
    weighted: bool = False  # in the limit: weight contexts by p_w/p0

    def __post_init__(self) -> None:
        if isinstance(self.alpha, float) and not np.isfinite(self.alpha):
            raise UsageError.expected("a finite number or 'limit'", self.alpha, where="alpha")
        check_least(self, top=1)

    def __call__(self, vectors: WordVectors) -> WordVectors:
        contexts = self._contexts(vectors)  # (V, D)
        words = np.asarray(vectors.matrix, np.float64) + (contexts if self.plus else 0)  # (V, D)
        logs = self._log_reference(vectors, words, contexts)  # (V,)
        shifted = contexts - np.exp(logs) @ contexts  # (V, D)
        values, axes = principal_axes(shifted.T @ (np.exp(logs)[:, None] * shifted))
        inverse = (axes * raise_to_power(values, -1.0 if self.metric == "identity" else -0.5)) @ axes.T  # (D, D)
        result = np.empty(vectors.matrix.shape, vectors.matrix.dtype)
        for rows, probabilities in _log_probabilities(words, contexts):
            result[rows] = self._weights(probabilities - logs, logs) @ shifted @ inverse
        return vectors.with_matrix(result)

    def _contexts(self, vectors: WordVectors) -> Array:
        if self.contexts is None:
            return np.asarray((vectors.contexts or vectors).matrix, np.float64)
        try:
            table = map_numbers(self.contexts)
        except ValueError as error:
            raise FormatError.expected("a .npy table of contexts", error, path=self.contexts) from None
        if table.shape != vectors.matrix.shape:
            raise FormatError.expected(f"shape {vectors.matrix.shape}", table.shape, path=self.contexts)
        return np.asarray(table, np.float64)

    def _log_reference(self, vectors: WordVectors, words: Array, contexts: Array) -> Array:
        """`ln p0`: uniform, the mean of the model over the words weighted by frequency, or the word frequencies."""
        if self.reference != "uniform" and not vectors.vocabulary.counts.any():
            where, cure = f"reference={self.reference}", "use reference=uniform"
            raise UsageError.expected("vectors with word counts", "none", where=where, cure=cure)
        shares = np.log(frequencies(vectors.vocabulary, "uniform" if self.reference == "uniform" else "counts"))
        if self.reference != "unigram":
            return shares
        blocks = _log_probabilities(words, contexts)
        parts = [np.logaddexp.reduce(logs + shares[rows, None], axis=0) for rows, logs in blocks]
        return np.asarray(np.logaddexp.reduce(parts, axis=0))

    def _weights(self, ratios: Array, logs: Array) -> Array:
        """`l(χ)` (n, V) from `ln p_w/p0`."""
        if self.alpha == "limit":
            return self._largest(ratios)
        bend = (1 - self.alpha) / 2
        if abs(bend) < 1e-12:
            return np.exp(logs) * ratios
        raised = bend * ratios
        over = np.maximum((raised + logs).max(1, keepdims=True) - _LARGEST, 0)  # (n, 1)
        scaled = np.exp(raised + logs - over) - np.exp(logs - over)
        near = np.abs(raised) < 1  # where the difference would lose precision
        exact = np.exp(logs - over) * np.expm1(np.where(near, raised, 0))
        return np.asarray(np.where(near, exact, scaled) / bend)

    def _largest(self, ratios: Array) -> Array:
        count = min(self.top, ratios.shape[1])
        chosen = np.argsort(-ratios, axis=1, kind="stable")[:, :count]  # (n, top)
        values = np.take_along_axis(ratios, chosen, 1)
        shares = np.exp(values - values[:, :1]) if self.weighted else np.ones_like(values)
        weights = np.zeros_like(ratios)
        np.put_along_axis(weights, chosen, shares / shares.sum(1, keepdims=True), 1)
        return weights


def _log_probabilities(words: Array, contexts: Array) -> Iterator[tuple[slice, Array]]:
    """`ln p_w(χ)` (n, V) block by block."""
    step = max(1, _AT_ONCE // max(1, len(contexts)))
    for start in range(0, len(words), step):
        rows = slice(start, start + step)
        scores = words[rows] @ contexts.T
        scores -= scores.max(1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(1, keepdims=True))
        yield rows, scores
