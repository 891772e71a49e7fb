"""scikit-learn: texts as vectors, a transformer for its pipelines, searches and column transformers.

>>> from stillvec import TextVectorizer
>>> make_pipeline(TextVectorizer("vectors"), LogisticRegression())  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import MissingExtra, UsageError, suggest
from stillvec.formats import load
from stillvec.vectors import WordVectors
from stillvec.vocabulary import WordMatcher

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtra("sklearn", "sklearn", "A transformer of scikit-learn") from None

Weighting = Literal["mean", "sif", "idf"]
_WEIGHTINGS = ("mean", "sif", "idf")


class TextVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A text is the weighted mean of the vectors of its words (n, dim), zero where it has none.

    >>> vectors = WordVectors(["ice", "snow"], [[1.0, 0.0], [0.0, 1.0]])
    >>> TextVectorizer(vectors).fit_transform(["Ice and snow.", "Ice!"]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]

    `vectors` are `WordVectors` or where they are. `weighting` is "mean"; "sif", `a / (a + f)` with a word's frequency f
    in the corpus of the vectors (Arora et al. 2017); or "idf", `ln((1 + n) / (1 + n_w)) + 1` over the n texts of `fit`.
    With `unit` rows have length one.
    """

    def __init__(
        self,
        vectors: WordVectors | str | os.PathLike[str],
        *,
        weighting: Weighting = "mean",
        a: float = 1e-3,
        unit: bool = False,
    ) -> None:
        self.vectors = vectors
        self.weighting = weighting
        self.a = a
        self.unit = unit

    def fit(self, X: Iterable[str], y: Any = None) -> TextVectorizer:  # noqa: N803 - scikit-learn's name
        """Read the vectors if they are a path, and weigh their words; `y` is not looked at."""
        if self.weighting not in _WEIGHTINGS:
            known = suggest(str(self.weighting), _WEIGHTINGS)
            raise UsageError(f"There is no weighting {self.weighting!r} of words; {known}")
        if not self.a > 0:
            raise UsageError(f"SIF's constant a is above 0, and {self.a} came.")
        texts = _texts(X)
        self.vectors_ = self.vectors if isinstance(self.vectors, WordVectors) else load(self.vectors)
        self.weights_ = self._weighed(texts)  # (V,)
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:  # noqa: N803
        """One row a text (n, dim)."""
        check_is_fitted(self)
        rows = self.vectors_.encode(_texts(X), weights=self.weights_)
        if not self.unit:
            return rows
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1))

    def _weighed(self, texts: list[str]) -> NDArray[np.float32]:
        vocabulary = self.vectors_.vocabulary
        if self.weighting == "mean":
            return np.ones(len(vocabulary), np.float32)
        if self.weighting == "idf":
            rows, text = WordMatcher(vocabulary, only_rows=True).rows(texts)
            held = np.unique(np.stack([text[rows >= 0], rows[rows >= 0]]), axis=1)[1]
            often = np.bincount(held, minlength=len(vocabulary))
            return np.asarray(np.log((1 + len(texts)) / (1 + often)) + 1, np.float32)
        if not vocabulary.counts.any():
            raise UsageError("The weighting 'sif' needs the counts of words, and these vectors have none; take 'idf'.")
        return np.asarray(self.a / (self.a + vocabulary.frequencies()), np.float32)

    @property
    def _n_features_out(self) -> int:
        return self.vectors_.dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _texts(given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise UsageError("A list of texts is wanted, and one text came; put it into a list.")
    texts = [*given]
    wrong = next((number for number, text in enumerate(texts) if not isinstance(text, str)), None)
    if wrong is not None:
        raise UsageError(f"Texts are strings, and number {wrong} (from 0) is {type(texts[wrong]).__name__}.")
    return texts
