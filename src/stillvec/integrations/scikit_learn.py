"""scikit-learn: a transformer from texts to vectors, for pipelines, searches and column transformers.

>>> from stillvec import TextVectorizer
>>> make_pipeline(TextVectorizer("vectors"), LogisticRegression())  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError, warn_renamed
from stillvec.formats import VectorSource, open_vectors
from stillvec.input_checks import check_arguments, check_strings
from stillvec.registry import check_positive, require
from stillvec.vocabulary import WordMatcher

require("sklearn.base", "sklearn", "TextVectorizer")
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

Weighting = Literal["mean", "sif", "idf"]
Scaling = Literal["center", "unit", "none"]
_LENGTH = 2.0  # of a centred row, on average; chosen with benchmarks/text_scaling.py


class TextEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose input is texts."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class TextVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TextEstimator):  # type: ignore[misc]
    """Texts to vectors: the weighted mean of the vectors of their words (n, dim), scaled; zero without a known word.

    >>> from stillvec import WordVectors
    >>> vectors = WordVectors(["ice", "snow"], [[1.0, 0.0], [0.0, 1.0]])
    >>> TextVectorizer(vectors, scaling="none").fit_transform(["Ice and snow.", "Ice!"]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]

    Args:
        vectors: The vectors of the words, or the path of a folder or file.
        weighting: Weight of a word: "mean" (1), "sif" (`a / (a + f)` with its frequency f in the corpus of the vectors;
            Arora et al. 2017; divided by what the rows contain of it, see `WordVectors.sif_weights`) or "idf"
            (`ln((1 + n) / (1 + n_w)) + 1` over the n texts given to `fit`).
        a: The constant of "sif".
        scaling: What is done with the means, which are short and alike, before a regularized model gets them: "center"
            (length one, minus the mean of the texts given to `fit`, times one factor, so that the root mean square of
            the lengths is 2), "unit" (length one) or "none".
        unit: The old name: True is `scaling="unit"`, False is `scaling="none"`.
    """

    def __init__(
        self,
        vectors: VectorSource,
        *,
        weighting: Weighting = "mean",
        a: float = 1e-3,
        scaling: Scaling = "center",
        unit: bool | None = None,
    ) -> None:
        self.vectors = vectors
        self.weighting = weighting
        self.a = a
        self.scaling = scaling
        self.unit = unit

    def fit(self, X: Iterable[str], y: Any = None) -> TextVectorizer:  # noqa: N803 - scikit-learn's name
        """Load the vectors if they are a path, weight their words, and learn the scaling.

        Parameters
        ----------
        X: the texts.
        y: ignored.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Iterable[str], y: Any = None) -> NDArray[np.float32]:  # noqa: N803
        """`fit` and `transform` on the same texts, which are encoded once.

        Parameters
        ----------
        X: the texts.
        y: ignored.
        """
        return self._scale(self._fit(X))

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:  # noqa: N803
        """One row per text (n, dim).

        Parameters
        ----------
        X: the texts.
        """
        check_is_fitted(self)
        return self._scale(self._encode(check_strings(X, "texts", what="texts")))

    def _fit(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Learn everything, and return the rows of the texts, not centred."""
        check_arguments(TextVectorizer, self.get_params(deep=False))
        for name, known in (("weighting", get_args(Weighting)), ("scaling", get_args(Scaling))):
            if getattr(self, name) not in known:
                raise UsageError.unknown(name, getattr(self, name), known)
        check_positive(self, "a")
        self.scaling_ = self.scaling
        if self.unit is not None:
            self.scaling_ = "unit" if self.unit else "none"
            warn_renamed("parameter", f"unit={self.unit}", f"scaling='{self.scaling_}'", stacklevel=4)
        checked = check_strings(texts, "texts", what="texts")
        self.vectors_ = open_vectors(self.vectors)
        self.weights_ = self._weight_words(checked)  # (V,)
        rows = self._encode(checked)
        known_rows = rows[rows.any(axis=1)]
        self.center_ = known_rows.mean(axis=0, dtype=np.float64) if len(known_rows) else np.zeros(self.vectors_.dim)
        length = float(np.sqrt(np.square(known_rows - self.center_).sum(axis=1).mean())) if len(known_rows) else 0.0
        self.factor_ = _LENGTH / length if length > 1e-6 else 1.0
        return rows

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        return self.vectors_.encode(texts, weights=self.weights_, normalize=self.scaling_ != "none")

    def _scale(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.scaling_ != "center":
            return rows
        centred = (rows - self.center_) * self.factor_
        centred[~rows.any(axis=1)] = 0  # a text without a known word is as the average one
        return np.asarray(centred, np.float32)

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
        return self.vectors_.sif_weights(self.a)

    @property
    def _n_features_out(self) -> int:
        return self.vectors_.dim
