"""TextVectorizer keeps scikit-learn's contract, weighs as it says, and serves its pipelines on real sentences."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec import TextVectorizer, Vocabulary, WordVectors, save
from stillvec.errors import DeprecatedName, UsageError

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError, SkipTestWarning  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

TEXTS = ["Ice and snow, ice!", "fire", "nothing known", "", "the snow the snow"]


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    vocabulary = Vocabulary(["the", "snow", "ice", "fire"], [900, 60, 30, 10])
    return WordVectors(vocabulary, np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))


@pytest.mark.parametrize("weighting", ["mean", "sif", "idf"])
def test_it_is_an_estimator_of_scikit_learn(vectors: WordVectors, weighting: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # of texts it asks little more than whether they are cloned
        done = check_estimator(TextVectorizer(vectors, weighting=weighting))
    assert {each["status"] for each in done} == {"passed"}


@pytest.mark.parametrize(
    "check",
    ["check_estimator_cloneable", "check_estimator_repr", "check_estimator_tags_renamed", "check_get_params_invariance",
     "check_no_attributes_set_in_init", "check_set_params", "check_valid_tag_types"],
)  # fmt: skip
def test_it_stands_every_check_of_scikit_learn_that_needs_no_table_of_numbers(vectors: WordVectors, check: str) -> None:
    given = TextVectorizer(vectors, weighting="idf")
    assert getattr(estimator_checks, check)("TextVectorizer", given) is None
    assert not hasattr(given, "vectors_")


def test_the_mean_is_that_of_the_vectors(vectors: WordVectors) -> None:
    made = TextVectorizer(vectors, scaling="none").fit_transform(TEXTS)
    np.testing.assert_allclose(made, vectors.encode(TEXTS), rtol=1e-6)
    assert made.dtype == np.float32


def test_idf_is_that_of_scikit_learn_on_the_texts_of_fit(vectors: WordVectors) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    fitted = TextVectorizer(vectors, weighting="idf", scaling="none").fit(TEXTS)
    theirs = TfidfVectorizer(vocabulary=vectors.words, norm=None).fit(TEXTS)
    np.testing.assert_allclose(fitted.weights_, theirs.idf_, rtol=1e-6)
    shares = theirs.transform(TEXTS).toarray()
    wanted = shares @ vectors.matrix / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(fitted.transform(TEXTS), wanted, rtol=1e-5, atol=1e-6)


def test_sif_weighs_by_the_frequency_in_the_corpus_of_the_vectors(vectors: WordVectors) -> None:
    made = TextVectorizer(vectors, weighting="sif", a=0.01, scaling="none").fit_transform(["the snow"])[0]
    the, snow = 0.01 / (0.01 + 0.9), 0.01 / (0.01 + 0.06)
    np.testing.assert_allclose(made, (the * vectors["the"] + snow * vectors["snow"]) / (the + snow), rtol=1e-5)
    with pytest.raises(UsageError, match="'idf'"):
        TextVectorizer(WordVectors(["a"], [[1.0]]), weighting="sif").fit(["a"])


def test_unit_rows_have_length_one_and_texts_without_words_none(vectors: WordVectors) -> None:
    lengths = np.linalg.norm(TextVectorizer(vectors, scaling="unit").fit_transform(TEXTS), axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 0, 0, 1], rtol=1e-6)


def test_centred_rows_have_mean_zero_and_length_two_and_texts_without_words_none(vectors: WordVectors) -> None:
    fitted = TextVectorizer(vectors)
    rows = fitted.fit_transform(TEXTS)
    np.testing.assert_allclose(rows[[0, 1, 4]].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(np.square(rows[[0, 1, 4]]).sum(axis=1).mean(), 4, rtol=1e-5)
    assert not rows[[2, 3]].any()
    np.testing.assert_array_equal(fitted.transform(TEXTS), rows)
    units = TextVectorizer(vectors, scaling="unit").fit_transform(TEXTS)
    differences = (rows[[0, 1]] - rows[4], units[[0, 1]] - units[4])
    np.testing.assert_allclose(differences[0], fitted.factor_ * differences[1], rtol=1e-4)


def test_the_old_parameter_unit_still_works(vectors: WordVectors) -> None:
    for unit, scaling in ((True, "unit"), (False, "none")):
        with pytest.warns(DeprecatedName, match="scaling"):
            old = TextVectorizer(vectors, unit=unit).fit_transform(TEXTS)
        new = TextVectorizer(vectors, scaling=scaling).fit_transform(TEXTS)  # type: ignore[arg-type]
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("texts", [[], ["nothing known"], ["ice"], ["ice", "ice"]])
def test_few_texts_suffice_to_fit(vectors: WordVectors, texts: list[str]) -> None:
    fitted = TextVectorizer(vectors).fit(texts)
    assert np.isfinite(fitted.transform(TEXTS)).all()


def test_it_takes_a_path_arrays_and_generators(vectors: WordVectors, tmp_path: Path) -> None:
    save(vectors, tmp_path / "v")
    fitted = TextVectorizer(tmp_path / "v", scaling="none").fit(TEXTS)
    wanted = vectors.encode(TEXTS)
    np.testing.assert_array_equal(fitted.transform(np.array(TEXTS)), wanted)
    np.testing.assert_array_equal(fitted.transform(text for text in TEXTS), wanted)
    assert fitted.transform([]).shape == (0, 3)


def test_names_of_columns_and_frames(vectors: WordVectors) -> None:
    fitted = TextVectorizer(vectors).fit(TEXTS)
    assert fitted.get_feature_names_out().tolist() == ["textvectorizer0", "textvectorizer1", "textvectorizer2"]
    pandas = pytest.importorskip("pandas")
    frame = fitted.set_output(transform="pandas").transform(pandas.Series(TEXTS, index=[*"abcde"]))
    assert [*frame.columns] == fitted.get_feature_names_out().tolist()
    assert [*frame.index] == [*"abcde"]


def test_what_is_not_a_list_of_texts_is_refused(vectors: WordVectors) -> None:
    for wrong, sentence in (("ice", "a list of texts"), (["ice", None], r"texts\[1\]: .* None")):
        with pytest.raises(UsageError, match=sentence):
            TextVectorizer(vectors).fit(wrong)
    with pytest.raises(UsageError, match="did you mean 'idf'"):
        TextVectorizer(vectors, weighting="tfidf").fit(TEXTS)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="scaling"):
        TextVectorizer(vectors, scaling="standard").fit(TEXTS)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="above 0"):
        TextVectorizer(vectors, a=0).fit(TEXTS)
    with pytest.raises(NotFittedError):
        TextVectorizer(vectors).transform(TEXTS)


def test_clones_share_the_vectors_and_pickles_hold_them(vectors: WordVectors, tmp_path: Path) -> None:
    import joblib

    fitted = TextVectorizer(vectors, weighting="idf").fit(TEXTS)
    assert clone(fitted).vectors is vectors
    joblib.dump(fitted, tmp_path / "model")
    for back in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(back.transform(TEXTS), fitted.transform(TEXTS))
        assert not back.vectors_.matrix.flags.writeable


def test_vectors_of_a_folder_and_with_n_grams_are_pickled_whole(vectors: WordVectors, tmp_path: Path) -> None:
    from stillvec import load, refine

    save(refine(vectors, "subword:buckets=50"), tmp_path / "v")
    given = load(tmp_path / "v")
    given.encode(["warm"])
    back = pickle.loads(pickle.dumps(given))
    assert copy.deepcopy(given) is given
    assert back.vocabulary == given.vocabulary
    np.testing.assert_array_equal(back[["ice", "icy"]], given[["ice", "icy"]])


def test_without_scikit_learn_the_extra_is_named() -> None:
    code = "import sys; sys.modules['sklearn'] = None\nimport stillvec\nstillvec.TextVectorizer"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "MissingExtra" in done.stderr
    assert "stillvec[sklearn]" in done.stderr


def test_questions_are_classified_far_above_chance(data_folder: Path, word_pieces: WordVectors) -> None:
    """TREC, six classes, in a pipeline whose weighting is searched for, on the packaged teacher's own pieces."""
    text = (data_folder / "classification" / "trec.train.txt").read_text("latin-1").splitlines()[:1500]
    labels, questions = zip(*(line.split(" ", 1) for line in text), strict=True)
    pipeline = make_pipeline(TextVectorizer(word_pieces), LogisticRegression())
    search = GridSearchCV(pipeline, {"textvectorizer__weighting": ["mean", "idf"]}, cv=3)
    search.fit(questions[:1000], labels[:1000])
    most = max(map(labels[1000:].count, set(labels))) / 500
    assert (accuracy := search.score(questions[1000:], labels[1000:])) > most + 0.3
    plain = make_pipeline(TextVectorizer(word_pieces, scaling="none"), LogisticRegression())
    assert accuracy > plain.fit(questions[:1000], labels[:1000]).score(questions[1000:], labels[1000:]) + 0.05
