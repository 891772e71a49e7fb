"""Natural alpha embeddings (Volpi & Malagò 2020): a word as a tangent vector of the model it stands for.

A model of words U and contexts V says `p_w(χ) ∝ exp(u_w · v_χ)`. Seen from a reference p0, with `ΔV = V - Σ p0 v` and
the Fisher matrix `I = Σ p0 ΔV ΔVᵀ`, the word is `W(w) = I⁻¹ Σ_χ l(χ) ΔV_χ` with
`l = p0 (2/(1-α)) ((p_w/p0)^((1-α)/2) - 1)`, at α = 1 `p0 ln(p_w/p0)`. With α = 1 and a uniform reference W is U.
The limit of α → -∞ is `I⁻¹ ΔV` of the context with the largest p_w/p0, or the mean over the `top` largest.

U are the vectors. V are `contexts`, a .npy with a row a word, or the vectors themselves. All words are compared with
all contexts: the time grows with the square of the vocabulary. Where numbers would overflow, a row is scaled down.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from tokenize import TokenError
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError, UsageError
from stillvec.numerics import principal_axes, raise_to_power
from stillvec.refinement.frequencies import frequencies
from stillvec.vectors import WordVectors

_AT_ONCE = 1 << 22  # probabilities held at once
_LARGEST = 30.0  # logarithm of the largest weight that is not scaled down

Array = NDArray[np.float64]
_BROKEN = (OSError, ValueError, TypeError, SyntaxError, EOFError, MemoryError, OverflowError, TokenError)  # a header


@dataclass(frozen=True)
class NaturalAlpha:
    SUMMARY: ClassVar[str] = "natural alpha embeddings"
    PAPERS: ClassVar[tuple[str, ...]] = ("volpi-2020",)

    alpha: Literal["limit"] | float = -1.0
    reference: Literal["uniform", "unigram", "counts"] = "uniform"  # the paper's 0, u, ud
    metric: Literal["identity", "fisher"] = "identity"  # cosines of the result are taken with this metric
    contexts: str | None = None
    plus: bool = False  # u_w + v_w in the place of u_w
    top: int = 1  # in the limit: contexts that count
    weighted: bool = False  # in the limit: each by its p_w/p0

    def __post_init__(self) -> None:
        if isinstance(self.alpha, float) and not np.isfinite(self.alpha):
            raise UsageError(f"Alpha is a finite number or 'limit', and {self.alpha} came.")
        if self.top < 1:
            raise UsageError(f"At least one context must count, and top is {self.top}.")

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
            return np.asarray(vectors.matrix, np.float64)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a header is Python 2's
                table = np.load(self.contexts, allow_pickle=False)
        except _BROKEN as error:
            raise FormatError(f"A table of contexts in .npy was wanted in {self.contexts}: {error}.") from None
        if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiu" or not np.isfinite(table).all():
            raise FormatError(f"A table of finite numbers in .npy was wanted in {self.contexts}, and it holds others.")
        if table.shape != vectors.matrix.shape:
            raise FormatError(f"{self.contexts} is of shape {table.shape}, and the words of {vectors.matrix.shape}.")
        return np.asarray(table, np.float64)

    def _log_reference(self, vectors: WordVectors, words: Array, contexts: Array) -> Array:
        """`ln p0`: all alike, the model's own mean over the words as they are met, or the counts."""
        if self.reference != "uniform" and not vectors.vocabulary.counts.any():
            raise UsageError(
                "The reference wants the corpus's counts, and these vectors carry none; say reference=uniform."
            )
        shares = np.log(frequencies(vectors.vocabulary, "uniform" if self.reference == "uniform" else "counts"))
        if self.reference != "unigram":
            return shares
        met = [
            np.logaddexp.reduce(probabilities + shares[rows, None], axis=0)
            for rows, probabilities in _log_probabilities(words, contexts)
        ]
        return np.asarray(np.logaddexp.reduce(met, axis=0))

    def _weights(self, ratios: Array, logs: Array) -> Array:
        """`l(χ)` of some words (n, V) from `ln p_w/p0`."""
        if self.alpha == "limit":
            return self._largest(ratios)
        bend = (1 - self.alpha) / 2
        if abs(bend) < 1e-12:
            return np.exp(logs) * ratios
        raised = bend * ratios
        over = np.maximum((raised + logs).max(1, keepdims=True) - _LARGEST, 0)  # (n, 1)
        scaled = np.exp(raised + logs - over) - np.exp(logs - over)
        near = np.abs(raised) < 1  # where the difference would lose its digits
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
    """`ln p_w(χ)` (n, V) for some rows at a time."""
    step = max(1, _AT_ONCE // max(1, len(contexts)))
    for start in range(0, len(words), step):
        rows = slice(start, start + step)
        scores = words[rows] @ contexts.T
        scores -= scores.max(1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(1, keepdims=True))
        yield rows, scores
