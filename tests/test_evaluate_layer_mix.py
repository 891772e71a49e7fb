"""Learned weights of layers: the gradient, the layer that has the labels, what a task reads, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from stillvec.errors import UsageError
from stillvec.evaluation import layer_mix
from stillvec.evaluation.layer_mix import learn_mix, mix_texts, mix_words
from stillvec.evaluation.tasks import check_occurrences, select_tasks
from stillvec.evaluation.teacher_states import open_teachers
from stillvec.heads.sequence_batches import UNKNOWN, Sequences
from stillvec.progress import drain

SENTENCES = [("the", "dog", "sleeps"), ("the", "sea"), ("a", "good", "book")]


def _layers(n: int = 400) -> tuple[list[np.ndarray], np.ndarray]:
    """Three layers of different sizes; only the second has the label."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, n)
    layers = [generator.standard_normal((n, 6)) * size + 5 for size in (1.0, 30.0, 0.1)]
    layers[1][:, :3] += 90 * np.eye(3)[labels]
    return layers, labels


def test_the_gradient_is_that_of_finite_differences() -> None:
    generator = np.random.default_rng(1)
    stacked = generator.standard_normal((3, 20, 4))
    counts = np.eye(2)[generator.integers(0, 2, 20)]
    at = generator.standard_normal(3 + 5 * 2) * 0.5
    value, slope = (lambda x, side=side: layer_mix._loss(x, stacked, counts)[side] for side in (0, 1))
    error = check_grad(value, slope, at, epsilon=1e-4)
    assert error < 2e-3  # float32 inside


def test_the_layer_with_the_labels_gets_the_weight_whatever_its_size() -> None:
    layers, labels = _layers()
    weights = learn_mix(layers, labels)
    shares = weights * [np.sqrt(np.mean(np.square(layer - layer.mean(axis=0)))) for layer in layers]
    assert shares.sum() == pytest.approx(1, abs=1e-3)
    assert shares[1] > 0.8


def test_only_training_items_have_a_part_in_the_weights() -> None:
    layers, labels = _layers(300)
    sequences = Sequences(np.zeros((0, 6)), np.arange(2, 302), np.arange(1, 301), None, tuple(map(_special, layers)))
    train = np.arange(200)
    by_words, by_texts = (mix(sequences, labels, train).table for mix in (mix_words, mix_texts))
    changed = np.concatenate([labels[:200], 2 - labels[200:]])
    other = [np.concatenate([layer[:202], -layer[202:]]) for layer in map(_special, layers)]
    for mix, before in ((mix_words, by_words), (mix_texts, by_texts)):
        after = mix(Sequences(sequences.table, sequences.ids, sequences.ends, None, tuple(other)), changed, train).table
        np.testing.assert_array_equal(after[:202], before[:202])


def _special(layer: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros((2, layer.shape[1])), layer]).astype(np.float32)


def test_a_mix_of_equal_weights_is_the_mean_of_all_layers(model: str) -> None:
    opened = open_teachers({name: f"teacher:{model}@{name}" for name in ("mix", "all")}, None, "cpu")
    mixed, mean = (opened[name].read_tokens(SENTENCES) for name in ("mix", "all"))
    assert len(mixed.layers) == 3
    assert len(mixed.table) == 0
    assert (mixed.ids != UNKNOWN).all()
    np.testing.assert_allclose(mixed.mix(np.full(3, 1 / 3)).table, mean.table, atol=1e-6)
    texts = [" ".join(words) for words in SENTENCES]
    layers = drain(opened["mix"].encode_layers_steps(texts))
    np.testing.assert_allclose(np.mean(layers, axis=0), opened["all"].encode_texts(texts), atol=1e-6)
    with pytest.raises(UsageError, match="@4-6") as caught:
        opened["mix"].encode_texts(texts)
    assert caught.value.code == "conflict"


def test_sequences_without_layers_stay_as_they_are() -> None:
    plain = Sequences(np.eye(4), np.array([2, 3]), np.array([1, 2]))
    assert mix_words(plain, np.zeros(2, int), np.arange(2)) is plain
    assert mix_texts(plain, np.zeros(2, int), np.arange(2)) is plain


def test_a_task_that_learns_no_mix_refuses_it() -> None:
    tasks, _ = select_tasks(["sentences"])
    check_occurrences(tasks, "bert@4")
    with pytest.raises(UsageError, match="'sentences'") as caught:
        check_occurrences(tasks, "bert@mix", is_mix=True)
    assert caught.value.code == "conflict"
