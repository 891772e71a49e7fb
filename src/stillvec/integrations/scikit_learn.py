"""scikit-learn: a transformer from texts to vectors, for pipelines, searches and column transformers.

>>> from stillvec import TextVectorizer
>>> make_pipeline(TextVectorizer("vectors"), LogisticRegression())  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.formats import open_vectors
from stillvec.numerics import unit_rows
from stillvec.registry import check_positive, require
from stillvec.vectors import WordVectors
from stillvec.vocabulary import WordMatcher

require("sklearn.base", "sklearn", "TextVectorizer")
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

Weighting = Literal["mean", "sif", "idf"]
_WEIGHTINGS = ("mean", "sif", "idf")


class TextVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Texts to vectors: the weighted mean of the vectors of their words (n, dim), zero without a known word.

    >>> vectors = WordVectors(["ice", "snow"], [[1.0, 0.0], [0.0, 1.0]])
    >>> TextVectorizer(vectors).fit_transform(["Ice and snow.", "Ice!"]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]

    Args:
        vectors: The vectors of the words, or the path of a folder or file.
        weighting: Weight of a word: "mean" (1), "sif" (`a / (a + f)` with its frequency f in the corpus of the vectors;
            Arora et al. 2017) or "idf" (`ln((1 + n) / (1 + n_w)) + 1` over the n texts given to `fit`).
        a: The constant of "sif".
        unit: Scale rows to length one. Set it, or scale in the pipeline, before regularized models: means are short.
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
        """Load the vectors if they are a path, and weight their words; `y` is ignored."""
        if self.weighting not in _WEIGHTINGS:
            raise UsageError.unknown("weighting", self.weighting, _WEIGHTINGS)
        check_positive(self, "a")
        texts = _check_texts(X)
        self.vectors_ = open_vectors(self.vectors)
        self.weights_ = self._weight_words(texts)  # (V,)
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:  # noqa: N803
        """One row per text (n, dim)."""
        check_is_fitted(self)
        rows = self.vectors_.encode(_check_texts(X), weights=self.weights_)
        return unit_rows(rows) if self.unit else rows

    def _weight_words(self, texts: list[str]) -> NDArray[np.float32]:
        vocabulary = self.vectors_.vocabulary
        if self.weighting == "mean":
            return np.ones(len(vocabulary), np.float32)
        if self.weighting == "idf":
            rows, text = WordMatcher(vocabulary, lazy=True).match_rows(texts)
            in_texts = np.unique(np.stack([text[rows >= 0], rows[rows >= 0]]), axis=1)[1]
            n_texts = np.bincount(in_texts, minlength=len(vocabulary))  # (V,)
            return np.asarray(np.log((1 + len(texts)) / (1 + n_texts)) + 1, np.float32)
        if not vocabulary.counts.any():
            raise UsageError.conflict("Weighting 'sif' needs word counts, which these vectors lack", cure="use 'idf'")
        return np.asarray(self.a / (self.a + vocabulary.frequencies()), np.float32)

    @property
    def _n_features_out(self) -> int:
        return self.vectors_.dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _check_texts(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise UsageError.expected("a list of texts", "one text", cure="put it into a list")
    checked = [*texts]
    for index, text in enumerate(checked):
        if not isinstance(text, str):
            raise UsageError.expected("a string", type(text).__name__, where=f"text {index}")
    return checked
