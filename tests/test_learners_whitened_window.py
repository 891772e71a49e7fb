"""The closed form of the window methods against a slow loop over centres, and against the start that it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import eigh
from tiny_corpus import PARTLY_KNOWN, count_repeated, likeness, matrix_of, slow_states, teach_words, words_of

from stillvec.learners.accumulators import remove_directions
from stillvec.learners.attentive_skipgram import AttentiveSkipgram
from stillvec.learners.context_blocks import ContextBlock
from stillvec.learners.context_to_vec import ContextToVec
from stillvec.learners.whitened_window import WhitenedWindow
from stillvec.learners.windows import WindowLearner
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary

TEXTS = PARTLY_KNOWN


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    return teach_words()


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return count_repeated(TEXTS)


def read_words(teacher: Teacher, texts: list[str], layers: list[int]) -> list[tuple[list[str], np.ndarray]]:
    """The words of each text and their states (n, D)."""
    read = []
    for text in texts:
        states, spans = slow_states(teacher, text)
        words = words_of(text)
        inside = [[n for n, (a, b) in enumerate(spans) if a < end and b > start] for _, start, end in words]
        rows = np.stack([states[layers][:, pieces].mean((0, 1)) for pieces in inside])
        read.append(([word for word, _, _ in words], rows))
    return read


def slow_vectors(settings: WhitenedWindow, teacher: Teacher, vocabulary: Vocabulary, texts: list[str]) -> np.ndarray:
    """Centre by centre, before common directions are removed."""
    read = read_words(teacher, texts, [teacher.depth] if settings.layer == "last" else [1, 2])
    states = np.concatenate([rows for _, rows in read])
    mean = states.mean(0)
    covariance = sum(np.outer(row - mean, row - mean) for row in states) / len(states)
    values, axes = eigh(covariance)
    chosen = np.argsort(-values)[: settings.dim]
    whitening = axes[:, chosen] / np.sqrt(values[chosen] + settings.ridge * np.trace(covariance) / len(covariance))
    totals = {word: np.zeros(whitening.shape[1]) for word in vocabulary}
    counts = dict.fromkeys(vocabulary, 0)
    for words, rows in read:
        for i in range(len(words)):
            near = [j for j in range(len(words)) if j != i and abs(i - j) <= settings.window]
            centre = rows[i]
            if near:
                centre = (1 - settings.context_weight) * centre + settings.context_weight * rows[near].mean(0)
            window = [*near, i] if settings.include_center or not near else near
            for word in (words[j] for j in window):
                if word in totals:
                    totals[word] += (centre - mean) @ whitening
                    counts[word] += 1
    return np.stack([totals[word] / (counts[word] + settings.prior) for word in vocabulary])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"include_center": False, "window": 1},
        {"include_center": False, "window": 5, "context_weight": 0.0, "layer": "1-2"},
        {"dim": 5, "ridge": 0.1, "prior": 0.0},
        {"dim": 7, "context_weight": 0.3, "window": 3, "layer": "1-2"},
    ],
)
@pytest.mark.parametrize("extra", [[], ["River!", "Zebras?"]], ids=["", "with texts of one word"])
def test_it_is_the_mean_of_the_whitened_centres_around_a_word(
    settings: dict[str, object], extra: list[str], teacher: Teacher, vocabulary: Vocabulary
) -> None:
    learner = WhitenedWindow(**{**settings, "directions": 0})  # type: ignore[arg-type]
    got = likeness(matrix_of(learner, teacher, vocabulary, [*TEXTS, *extra]))
    wanted = likeness(slow_vectors(learner, teacher, vocabulary, [*TEXTS, *extra]))
    assert np.abs(got - wanted).max() < 1e-4 * np.abs(wanted).max()


def stored_block(teacher: Teacher, vocabulary: Vocabulary) -> ContextBlock:
    read = read_words(teacher, TEXTS, [teacher.depth])
    ids = [vocabulary.index.get(word, -1) for words, _ in read for word in words]
    states = torch.from_numpy(np.concatenate([rows for _, rows in read])).float()
    lengths = torch.tensor([len(words) for words, _ in read])
    return ContextBlock(torch.tensor(ids), lengths, torch.zeros(len(read), states.shape[1]), states)


@pytest.mark.parametrize("include_center", [True, False])
@pytest.mark.parametrize(("kind", "context_weight"), [(ContextToVec, 0.5), (AttentiveSkipgram, 0.0)])
@pytest.mark.parametrize("directions", [0, 3])
def test_it_is_where_the_window_methods_start_with_a_closed_start(
    include_center: bool,
    kind: type[WindowLearner],
    context_weight: float,
    directions: int,
    teacher: Teacher,
    vocabulary: Vocabulary,
) -> None:
    same = {"dim": 6, "window": 2, "include_center": include_center, "ridge": 1.0}
    start = kind(**same, whiten=True, start="closed", epochs=0)  # type: ignore[arg-type]
    counts = torch.from_numpy(np.array(vocabulary.counts))
    model = start.model(counts, [stored_block(teacher, vocabulary)], teacher.dim, torch.device("cpu"))
    wanted = remove_directions(model.result()["vectors"].numpy(), vocabulary, directions)
    learner = WhitenedWindow(**same, context_weight=context_weight, directions=directions)  # type: ignore[arg-type]
    got = matrix_of(learner, teacher, vocabulary, TEXTS)
    assert np.abs(got - wanted).max() < 1e-4 * np.abs(wanted).max()
