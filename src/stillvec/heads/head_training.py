"""Train the networks of heads of texts: all seeds at once, early stopping on development items; the best is kept."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray

from stillvec.heads.head_kind import Arrays, Lesson, NetworkHead, Trained, choose_threshold
from stillvec.heads.networks import NetworkSettings, PaddedTexts
from stillvec.heads.numpy_layers import sigmoid, unit
from stillvec.heads.sequence_batches import keep_table
from stillvec.heads.text_networks import TextNetworks, TextTraining
from stillvec.heads.training_options import TeacherOption
from stillvec.numerics.array_types import Floats

_CENTROID_SCALE = 10.0  # of the cosines to the mean directions of labels


def train_texts(
    kind: NetworkHead, networks: type[TextNetworks], lesson: Lesson, border: int = 0
) -> Generator[float, None, tuple[list[NDArray[np.float32]], Trained]]:
    """The own parameters of the best network, and the arrays that all heads have."""
    texts = PaddedTexts([lesson.sequences], lesson.resolve_device(), border)
    teacher = lesson.options.get("teacher")
    training = TextTraining(
        kind.read_objective(),
        several=lesson.data.multilabel,
        options=lesson.options,
        soft=lesson.soft,
        soft_weight=teacher.choose_weight(several=lesson.data.multilabel) if isinstance(teacher, TeacherOption) else 0,
        student_first=isinstance(teacher, TeacherOption) and teacher.direction == "student",
    )
    settings = [NetworkSettings(0, seed, kind.rate) for seed in lesson.seeds]
    group = networks(texts, lesson.all_targets().astype(np.float32), settings, tuned=kind.tuned, training=training)
    measure = _measure_labels(group, lesson) if training.objective.trains_labels else _measure_centroids(group, lesson)
    rows = np.concatenate([lesson.data.train, lesson.unlabelled])
    quality = yield from group.train_best(
        rows, kind.epochs, measure, patience=kind.patience, checkpoint=lesson.checkpoint
    )
    at = int(np.argmax(quality))
    parameters = [part[at].detach().cpu().numpy() for part in group.parameters]
    weights, bias = parameters[group.n_own : group.n_own + 2]
    if not training.objective.trains_labels:
        weights, bias = _find_centroids(group.predict_features(lesson.data.train)[at], lesson), np.zeros_like(bias)
        weights = weights * _CENTROID_SCALE
    elif training.objective.unit:
        weights, bias = unit(weights.T).T * training.objective.score_scale, np.zeros_like(bias)
    factor = lesson.sequences.scale_factor
    arrays: Arrays = {"weights": weights, "bias": bias, "factor": np.float32(factor).reshape(1)}
    if kind.tuned:
        arrays |= keep_table(parameters[-1], lesson.sequences)
    threshold = 0.5
    if lesson.data.multilabel:
        likely = sigmoid(group.predict_scores(lesson.data.dev)[at])
        threshold = choose_threshold(likely, lesson.targets[lesson.data.dev])[0]
    return parameters[: group.n_own], Trained(arrays, float(quality[at]), threshold)


def _measure_labels(group: TextNetworks, lesson: Lesson) -> Callable[[], Floats]:
    """The quality of each network on development texts: accuracy, or micro-F1 if texts may have several labels."""
    gold = lesson.targets[lesson.data.dev]

    def measure() -> Floats:
        scores = group.predict_scores(lesson.data.dev)
        if lesson.data.multilabel:
            return np.array([choose_threshold(sigmoid(part), gold)[1] for part in scores])
        return np.asarray((scores.argmax(axis=2) == gold.argmax(axis=1)).mean(axis=1))

    return measure


def _measure_centroids(group: TextNetworks, lesson: Lesson) -> Callable[[], Floats]:
    gold = lesson.targets[lesson.data.dev].argmax(axis=1)

    def measure() -> Floats:
        train, dev = (group.predict_features(rows) for rows in (lesson.data.train, lesson.data.dev))
        pairs = zip(train, dev, strict=True)
        said = [(unit(asked) @ _find_centroids(known, lesson)).argmax(axis=1) for known, asked in pairs]
        return np.array([(labels == gold).mean() for labels in said])

    return measure


def _find_centroids(features: NDArray[np.float32], lesson: Lesson) -> NDArray[np.float32]:
    """The mean direction of the training texts of each label (F, k)."""
    gold = lesson.targets[lesson.data.train]
    return unit(np.asarray(gold.T @ unit(features), np.float32)).T
