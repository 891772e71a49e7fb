"""Training is not a no-op: from a random start, the methods that train learn which words share their contexts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from stillvec.learners import LEARNERS
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.numerics import cosines, unit_rows
from stillvec.registry import settings_from
from stillvec.statistics import Statistics
from stillvec.vocabulary import Vocabulary

METHODS = ("x2static", "attentive_skipgram", "context_to_vec")
GROUP, GROUPS, WIDTH, SENTENCES = 12, 2, 24, 240
SMALL = {"batch": 8, "epochs": 10, "directions": 0}  # otherwise the defaults
OF_METHOD: Mapping[str, Mapping[str, object]] = {
    "x2static": {"rate": 0.01, "subsample": 1.0},
    "attentive_skipgram": {"dim": 16, "rate": 0.025, "attention": 0.3},  # 1.0 soon attends to one word only
    "context_to_vec": {"dim": 16, "rate": 0.01, "attention": 0.3},
}


def planted_contexts(seed: int = 0) -> dict[str, Statistics]:
    """Sentences of two subjects: each has words of its own, and states around a point of its own."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(GROUPS, WIDTH))
    lengths = random.integers(10, 20, SENTENCES)
    subject = random.integers(0, GROUPS, SENTENCES)
    of_word = np.repeat(subject, lengths)
    states = points[of_word] + 0.5 * random.normal(size=(len(of_word), WIDTH))
    contexts = np.add.reduceat(states, np.cumsum(lengths) - lengths) / lengths[:, None]
    arrays = {
        "stored:words": (GROUP * of_word + random.integers(0, GROUP, len(of_word))).astype(np.int32),
        "stored:lengths": lengths.astype(np.int32),
        "stored:contexts": contexts.astype(np.float16),
        "stored:states": states.astype(np.float16),
        "stored:scale": np.array(1.0),
    }
    return {"contexts": Statistics(Vocabulary([f"w{number}" for number in range(GROUPS * GROUP)]), arrays)}


def vectors_of(method: str, **settings: object) -> np.ndarray:
    learner = settings_from(LEARNERS[method], {**SMALL, **OF_METHOD[method], **settings})
    return np.array(learner.finish(planted_contexts()).vectors.matrix, float)


def separation(matrix: np.ndarray) -> float:
    """The mean cosine of words of one subject, less that of words of two, without the mean."""
    units = unit_rows(matrix - matrix.mean(0))
    likeness, subject = units @ units.T, np.repeat(np.arange(GROUPS), GROUP)
    same = subject[:, None] == subject
    return float(likeness[same & ~np.eye(len(units), dtype=bool)].mean() - likeness[~same].mean())


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_words_of_a_subject_come_together_and_leave_their_random_start(method: str) -> None:
    start, trained = vectors_of(method, epochs=0), vectors_of(method)
    assert abs(separation(start)) < 0.1, "the start knows nothing"
    assert separation(trained) > 0.5
    assert float(np.mean(cosines(start, trained))) < 0.7, "the vectors are not their start"


@pytest.mark.parametrize("pool", ["attention", "mean", "sum", "each"])
@pytest.mark.parametrize("method", METHODS[1:])
def test_every_pooling_of_the_window_learns(method: str, pool: str) -> None:
    assert separation(vectors_of(method, pool=pool)) > 0.5


def test_the_defaults_train_from_a_random_start(method: str) -> None:
    learner = LEARNERS[method]()
    assert isinstance(learner, TrainedLearner)
    assert learner.epochs > 0
    assert getattr(learner, "start") == "random"  # noqa: B009 - a setting of each method
    assert getattr(learner, "projection_rate", 1.0) > 0
    assert not getattr(learner, "include_center", False), "a word does not predict itself"


def test_the_poolings_of_the_window_differ() -> None:
    """From a closed start they would be the same vectors."""
    attention, mean = (vectors_of("attentive_skipgram", pool=pool, attention=1.0) for pool in ("attention", "mean"))
    assert float(np.mean(cosines(attention, mean))) < 0.99
