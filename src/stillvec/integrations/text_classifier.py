"""scikit-learn: a classifier of texts on word vectors, `fit` with scikit-learn's conventions.

>>> from stillvec import TextClassifier
>>> cross_val_score(TextClassifier("vectors"), texts, labels)  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import TargetError, UsageError
from stillvec.formats import VectorSource
from stillvec.heads import HEADS
from stillvec.heads.head_folder import load_head
from stillvec.input_checks import check_arguments, check_strings
from stillvec.notation import parse_spec
from stillvec.registry import create, require
from stillvec.verbs.fitting import Packing, fit

require("sklearn.base", "sklearn", "TextClassifier")
from sklearn.base import ClassifierMixin  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import check_is_fitted, column_or_1d  # noqa: E402

from stillvec.integrations.scikit_learn import TextEstimator  # noqa: E402

_KIND = "label_type"  # in the manifest of a head: the kind of labels that are not strings


class TextClassifier(ClassifierMixin, TextEstimator):  # type: ignore[misc]
    """A small model on word vectors that gives each text a label; prediction needs NumPy and SciPy alone.

    >>> from stillvec import WordVectors
    >>> vectors = WordVectors(["ice", "snow", "fire", "heat"], [[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]])
    >>> classifier = TextClassifier(vectors).fit(["ice and snow", "fire, heat"] * 10, ["cold", "warm"] * 10)
    >>> classifier.predict(["Snow!", "the heat of a fire"]).tolist()
    ['cold', 'warm']

    A fifth of the texts given to `fit` is used to choose the penalty or the end of training. The fitted `Head` is
    `head_`, the labels are `classes_`.

    Args:
        vectors: The vectors of the words, or the path of a folder or file.
        head: The kind of head with its settings: "linear", "cnn:epochs=10", "attention" or "knn".
        options: Training options with settings, such as "teacher:model=tuned".
        packing: The vectors inside the head: "int8", "fp16" or "none", as they are.
        seed: Of everything random.
        seeds: So many networks are trained, from `seed` on, and the best on development texts is kept.
        device: Where networks are trained: "auto", "cpu" or "cuda".
    """

    def __init__(
        self,
        vectors: VectorSource,
        head: str = "linear",
        options: Sequence[str] = (),
        *,
        packing: Packing = "int8",
        seed: int = 0,
        seeds: int = 1,
        device: Literal["auto", "cpu", "cuda"] = "auto",
    ) -> None:
        self.vectors = vectors
        self.head = head
        self.options = options
        self.packing = packing
        self.seed = seed
        self.seeds = seeds
        self.device = device

    def fit(self, X: Iterable[str], y: Any) -> TextClassifier:  # noqa: N803 - scikit-learn's name
        """Train the head.

        Parameters
        ----------
        X: the texts.
        y: the label of each: strings, whole numbers or truth values.
        """
        check_arguments(TextClassifier, self.get_params(deep=False))
        _check_unit(create(HEADS, self.head).unit, parse_spec(self.head).name)
        texts = check_strings(X, "texts", what="texts")
        classes, rows = _read_targets(y, len(texts))
        names = [str(label) for label in classes.tolist()]
        pairs = [(text, names[row]) for text, row in zip(texts, rows.tolist(), strict=True)]
        self.head_ = fit(
            self.vectors, pairs, self.head, self.options,
            packing=self.packing, seed=self.seed, seeds=self.seeds, device=self.device,
        )  # fmt: skip
        if classes.dtype.kind in "iufb":
            self.head_.manifest[_KIND] = classes.dtype.kind
        self._set_classes()
        return self

    def predict(self, X: Iterable[str]) -> NDArray[Any]:  # noqa: N803
        """The label of each text (n,).

        Parameters
        ----------
        X: the texts.
        """
        likely = self.predict_proba(X)
        return np.asarray(self.classes_[likely.argmax(axis=1)])

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float32]:  # noqa: N803
        """The probability of each label (n, k), in the order of `classes_`.

        Parameters
        ----------
        X: the texts.
        """
        check_is_fitted(self)
        return np.asarray(self.head_.predict_proba(X)[:, self._order])

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the head as a folder, which `load`, `load_head` and `stillvec predict` read.

        Parameters
        ----------
        path: the folder.
        force: replace what exists (default: False).
        """
        check_arguments(TextClassifier.save, locals())
        check_is_fitted(self)
        self.head_.save(path, force=force)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TextClassifier:
        """A fitted classifier from the folder that `save`, `stillvec.fit` or `stillvec fit` wrote.

        Parameters
        ----------
        path: the folder.
        """
        head = load_head(path)
        _check_unit(head.kind.unit, head.name)
        if head.multilabel:
            raise UsageError.conflict("This head gives several labels per text", cure="use load_head", path=path)
        settings = {key: value for key, value in head.manifest.get("settings", {}).items() if value is not None}
        kind = ",".join(f"{key}={value}" for key, value in settings.items())
        seed, seeds = (int(head.manifest.get(key, default)) for key, default in (("seed", 0), ("seeds", 1)))
        spec = f"{head.name}:{kind}" if kind else head.name
        loaded = cls(head.vectors, spec, packing="none", seed=seed, seeds=seeds)
        loaded.head_ = head
        loaded._set_classes()
        return loaded

    def _set_classes(self) -> None:
        """The labels in scikit-learn's order, and the column that each has in the head."""
        names, kind = np.array(self.head_.labels), self.head_.manifest.get(_KIND)
        casts = {"i": np.int64, "u": np.int64, "f": np.float64}
        labels = names == "True" if kind == "b" else names.astype(casts[kind]) if kind in casts else names
        self._order = np.argsort(labels, kind="stable")
        self.classes_ = labels[self._order]


def _check_unit(unit: str, name: str) -> None:
    if unit != "text":
        raise UsageError.conflict(f"The head {name!r} gives no label to a text", cure="use linear, cnn, attention, knn")


def _read_targets(y: Any, n_texts: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The different labels, sorted, and the number of that of each text."""
    if y is None:
        raise TargetError("TextClassifier requires y to be passed, but the target y is None.", code="no-labels")
    try:
        targets = column_or_1d(y, warn=True)
        check_classification_targets(targets)
        classes, rows = np.unique(targets, return_inverse=True)
    except (ValueError, TypeError) as error:
        raise TargetError(f"y: expected a label per text: {error}") from None
    if len(targets) != n_texts:
        raise TargetError.expected(f"{n_texts:,} labels, as many as texts", f"{len(targets):,}", where="y")
    if len(classes) < 2:
        raise TargetError.expected("labels of two classes or more", f"{len(classes)} class", where="y")
    if len({str(label) for label in classes.tolist()}) < len(classes):
        raise TargetError.expected("labels that differ as text", f"{classes.tolist()}", where="y")
    return classes, np.asarray(rows, np.int64)
