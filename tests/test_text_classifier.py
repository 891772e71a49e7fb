"""TextClassifier keeps scikit-learn's contract, works in its searches, and is saved and loaded as a head."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec import TextClassifier, WordVectors, fit, load_head
from stillvec.errors import TargetError, UsageError

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

COLD, WARM = ["ice snow", "the snow", "ice here", "frost and ice"], ["fire", "the heat", "heat here", "sun and fire"]
TEXTS, LABELS = [*COLD, *WARM] * 5, (["cold"] * 4 + ["warm"] * 4) * 5
N_COLUMNS, STEP, MOST = 30, 6, 300  # of the numbers that are written as words, in tenths


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    words = ["ice", "snow", "frost", "fire", "heat", "sun", "the", "here"]
    matrix = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32) * 0.3
    matrix[:3, 0] += 2
    matrix[3:6, 0] -= 2
    return WordVectors(words, matrix)


def _name(column: int, tenths: int) -> str:
    return f"c{column}{'m' if tenths < 0 else 'p'}{abs(tenths)}"


def _spell_numbers() -> WordVectors:
    """A word for each column and number, whose vector has the number in that column."""
    grid = [(column, tenths) for column in range(N_COLUMNS) for tenths in range(-MOST, MOST + 1, STEP)]
    matrix = np.zeros((len(grid), N_COLUMNS), np.float32)
    for row, (column, tenths) in enumerate(grid):
        matrix[row, column] = tenths / 10 + 1e-3  # a zero vector is an unknown word
    return WordVectors([_name(*cell) for cell in grid], matrix)


class OnNumbers(TextClassifier):
    """TextClassifier on tables of numbers, each row written as a text, so that scikit-learn can check it."""

    vectors, options, packing, seed, seeds, device = _spell_numbers(), (), "none", 0, 1, "cpu"

    def __init__(self, head: str = "linear") -> None:
        self.head = head

    def fit(self, X: Any, y: Any) -> TextClassifier:  # noqa: N803
        table = validate_data(self, X) if y is None else validate_data(self, X, y, multi_output=True)[0]
        return super().fit(self._write(table), y)

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        check_is_fitted(self)
        return super().predict_proba(self._write(validate_data(self, X, reset=False)))

    @staticmethod
    def _write(table: Any) -> list[str]:
        tenths = np.clip(np.rint(np.asarray(table) * 10 / STEP) * STEP, -MOST, MOST).astype(int).tolist()
        return [" ".join(_name(column, number) for column, number in enumerate(row)) for row in tenths]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = True, False
        return tags


SKIPPED = {"check_array_api_input": "needs SCIPY_ARRAY_API=1; texts are no arrays of numbers"}


def test_it_passes_every_check_of_scikit_learn_when_numbers_are_written_as_texts() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        done = check_estimator(OnNumbers(), on_fail=None)
    assert {each["check_name"]: str(each["exception"]) for each in done if each["status"] == "failed"} == {}
    assert {each["check_name"] for each in done if each["status"] == "skipped"} <= {*SKIPPED}
    assert {"check_classifiers_train", "check_classifiers_classes", "check_estimators_pickle"} <= {
        each["check_name"] for each in done if each["status"] == "passed"
    }


@pytest.mark.parametrize(
    "check",
    ["check_estimator_cloneable", "check_estimator_repr", "check_estimator_tags_renamed", "check_get_params_invariance",
     "check_no_attributes_set_in_init", "check_set_params", "check_valid_tag_types", "check_mixin_order"],
)  # fmt: skip
def test_with_texts_it_passes_the_checks_that_need_no_table(vectors: WordVectors, check: str) -> None:
    given = TextClassifier(vectors, "knn:k=3")
    assert getattr(estimator_checks, check)("TextClassifier", given) is None
    assert not hasattr(given, "head_")


def test_it_predicts_what_the_head_of_fit_predicts(vectors: WordVectors) -> None:
    classifier = TextClassifier(vectors).fit(TEXTS, LABELS)
    head = fit(vectors, zip(TEXTS, LABELS, strict=True))
    asked = ["snow!", "a hot sun", "", "unknown"]
    np.testing.assert_array_equal(classifier.predict_proba(asked), head.predict_proba(asked))
    assert classifier.predict(asked).tolist() == head.predict(asked)
    assert classifier.score(TEXTS, LABELS) == 1
    assert classifier.classes_.tolist() == ["cold", "warm"]


def test_it_works_in_pipelines_searches_and_cross_validation(vectors: WordVectors) -> None:
    assert cross_val_score(TextClassifier(vectors), TEXTS, LABELS, cv=2).tolist() == [1, 1]
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    search = GridSearchCV(
        make_pipeline(lower, TextClassifier(vectors)), {"textclassifier__head": ["linear", "knn:k=1"]}
    )
    search.fit(TEXTS, LABELS)
    assert search.predict(["SNOW", "HEAT"]).tolist() == ["cold", "warm"]
    assert clone(search.best_estimator_)["textclassifier"].vectors is vectors


@pytest.mark.parametrize("labels", [[10, 9], [True, False], [1.0, 0.0], ["b", "a"]])
def test_labels_keep_their_type_and_order_also_in_a_folder(vectors: WordVectors, tmp_path: Path, labels: Any) -> None:
    classifier = TextClassifier(vectors).fit(TEXTS, [labels[label == "warm"] for label in LABELS])
    assert classifier.classes_.tolist() == sorted(labels)
    assert classifier.predict(["snow", "heat"]).tolist() == labels
    classifier.save(tmp_path / "head")
    loaded = TextClassifier.load(tmp_path / "head")
    assert loaded.classes_.tolist() == sorted(labels)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), classifier.predict_proba(TEXTS))
    assert load_head(tmp_path / "head").predict(["snow"]) == [str(labels[0])]
    with pytest.raises(UsageError, match="exists"):
        classifier.save(tmp_path / "head")


def test_a_loaded_classifier_can_be_fitted_again_and_pickled(vectors: WordVectors, tmp_path: Path) -> None:
    fit(vectors, zip(TEXTS, LABELS, strict=True), "knn:k=3,center=false", out=tmp_path / "head")
    loaded = TextClassifier.load(tmp_path / "head")
    again = clone(loaded).fit(TEXTS, LABELS)
    for other in (again, pickle.loads(pickle.dumps(loaded))):
        np.testing.assert_array_equal(other.predict(["snow", "heat"]), loaded.predict(["snow", "heat"]))
    assert again.head_.kind == loaded.head_.kind


def test_wrong_labels_and_heads_are_one_sentence(vectors: WordVectors, tmp_path: Path) -> None:
    wrong = {"two classes": ["a"] * 40, "40 labels": ["a"] * 3, "continuous": np.linspace(0, 1, 40), "None": None}
    for what, labels in wrong.items():
        with pytest.raises(TargetError, match=what):
            TextClassifier(vectors).fit(TEXTS, labels)
    with pytest.raises(UsageError, match="'tagger' gives no label"):
        TextClassifier(vectors, "tagger").fit(TEXTS, LABELS)
    with pytest.raises(UsageError, match="did you mean 'linear'"):
        TextClassifier(vectors, "liner").fit(TEXTS, LABELS)
    with pytest.raises(NotFittedError):
        TextClassifier(vectors).predict(TEXTS)
    with pytest.raises(NotFittedError):
        TextClassifier(vectors).save(tmp_path / "head")
    several = [(text, ["a", "b"] if "ice" in text else ["b"]) for text in TEXTS]
    fit(vectors, several, out=tmp_path / "several", multilabel=True)
    with pytest.raises(UsageError, match="several labels"):
        TextClassifier.load(tmp_path / "several")


def test_without_scikit_learn_the_extra_is_named() -> None:
    code = "import sys; sys.modules['sklearn'] = None\nimport stillvec\nstillvec.TextClassifier"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "stillvec[sklearn]" in done.stderr
