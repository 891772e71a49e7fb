"""Sent2vec against its objective written out: features, steps by autograd, negatives, what is dropped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_text import ONE, drained, slow_loss, written

from stillvec.baselines.sent2vec import Sent2vec, Sent2vecJob, Sent2vecModel
from stillvec.training.negative_sampling import NegativeSampler

SENTENCES = [[0, 1, 2, 3, 1], [4, 0], [2, 2, 5, 1]]
ROWS = np.concatenate(SENTENCES)
ENDS = np.cumsum([len(each) for each in SENTENCES])


@pytest.fixture(autouse=True, scope="module")
def numba() -> None:
    pytest.importorskip("numba")


def filled(settings: Sent2vec, words: int = 6) -> Sent2vecModel:
    """A model with something in both tables."""
    model = Sent2vecModel(settings, np.full(words, 3))
    choose = np.random.default_rng(3)
    for table in (model.sources, model.targets):
        table[:] = choose.normal(size=table.shape)
    return model


def feature(gram: list[int], words: int, buckets: int) -> int:
    value = gram[0]
    for each in gram[1:]:
        value = (value * 116049371 + each) % 2**64
    return gram[0] if len(gram) == 1 else words + value % buckets


@pytest.mark.parametrize("ngrams", [1, 2, 3])
def test_steps_of_sent2vec_are_those_of_its_objective_by_autograd(ngrams: int) -> None:
    model = filled(Sent2vec(dim=4, word_ngrams=ngrams, buckets=11))
    sources, targets = (torch.from_numpy(each.copy()).double() for each in (model.sources, model.targets))
    choose = np.random.default_rng(5)
    is_kept = choose.random(len(ROWS)) < 0.7
    drawn = np.stack([choose.permutation(6)[:3] for _ in range(is_kept.sum())])
    wanted, passed, begin = 0.0, 0, 0
    for sentence in SENTENCES:
        before = sources.clone().requires_grad_()
        for place, word in enumerate(sentence):
            if not is_kept[begin + place]:
                continue
            outside = [
                feature(sentence[first : first + size], 6, 11)
                for size in range(1, ngrams + 1)
                for first in range(len(sentence) - size + 1)
                if not first <= place < first + size
            ]
            table = targets.clone().requires_grad_()
            others = [each for each in drawn[passed].tolist() if each != word]
            loss = slow_loss(before[outside].mean(0)[None], table, [word], others, len(others))
            loss.backward()  # adds up by the sources, which step after the sentence
            targets -= 0.1 * table.grad  # type: ignore[operator]
            wanted, passed = wanted + loss.item(), passed + 1
        if before.grad is not None:
            sources -= 0.1 * before.grad
        begin += len(sentence)
    got = model.train(model.sources, model.targets, ROWS, ENDS, is_kept, drawn, np.empty((3, 0)), ngrams, 0.1)
    assert 0 < passed < len(ROWS)
    assert got == pytest.approx(wanted, rel=1e-5)
    assert np.allclose(model.sources, sources, atol=1e-5)
    assert np.allclose(model.targets, targets, atol=1e-5)


def test_sent2vec_drops_ngrams_of_each_sentence_and_no_word() -> None:
    model = filled(Sent2vec(dim=4, word_ngrams=3, dropped_ngrams=3, buckets=10**5, subsample=0.0), 50)
    before = model.sources.copy()
    model.train_job(Sent2vecJob(np.arange(20), np.array([2, 12, 20]), 0.1, (0,)))
    changed = np.flatnonzero((model.sources != before).any(1))
    assert changed[changed < 50].tolist() == [*range(20)]
    assert (changed >= 50).sum() == (1 - 1) + (9 + 8 - 3) + (7 + 6 - 3)


def test_each_ngram_is_dropped_as_often_as_any_other() -> None:
    often = np.zeros(7)
    rows = np.arange(8)
    grams = [feature([a, a + 1], 8, 10**5) for a in range(7)]
    model = filled(Sent2vec(dim=2, word_ngrams=2, dropped_ngrams=2, buckets=10**5, subsample=0.0), 8)
    for seed in range(700):
        before = model.sources[grams]
        model.train_job(Sent2vecJob(rows, np.array([8]), 1e-3, (seed,)))
        often += (model.sources[grams] == before).all(1)
    assert often.sum() == 2 * 700
    assert np.abs(often - 200).max() < 50  # four deviations


def test_negatives_drawn_at_once_have_the_proportions_of_the_paper_and_are_mixed() -> None:
    counts = np.array([900, 0, 90, 10])
    drawn = NegativeSampler(counts, 0.5).draw_stratified(40_000, np.random.default_rng(0))
    shares = np.sqrt(counts) / np.sqrt(counts).sum()
    for some in (drawn, drawn[:20_000], drawn[20_000:]):
        assert np.allclose(np.bincount(some, minlength=4) / len(some), shares, atol=0.02)
    assert len(NegativeSampler(counts, 0.5).draw_stratified(0, np.random.default_rng(0))) == 0


def test_sent2vec_learns_which_words_occur_together(tmp_path: Path) -> None:
    text = written(tmp_path / "text")
    given = {"dim": 16, "subsample": 1.0, "rate": 0.5}
    made, first = (drained(Sent2vec(epochs=epochs, **given).steps(text, ONE)) for epochs in (60, 1))
    assert made.vectors.words == text.vocabulary.words
    assert made.notes["loss"] < 0.9 * first.notes["loss"]


def test_a_sentence_of_thousands_of_words_makes_no_large_step(tmp_path: Path) -> None:
    choose = np.random.default_rng(0)
    words = [one + other for one in "bcdfg" for other in "aeiou"]
    texts = [" ".join(choose.choice(words, 2000)) for _ in range(20)]
    trained = drained(Sent2vec(dim=20, epochs=20, subsample=0).steps(written(tmp_path / "text", texts), ONE))
    assert np.isfinite(trained.vectors.matrix).all()
    assert np.abs(trained.vectors.matrix).max() < 10
