"""GloVe against a second way: pairs counted by hand, the paper's sum, autograd, steps written out."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_corpus import sentences, words_of
from tiny_text import ONE, drained, written

from stillvec.baselines import Text
from stillvec.baselines.cooccurrence import Run, added, count_pairs, dealt
from stillvec.baselines.glove import Factors, Glove, cut


@pytest.fixture
def text(tmp_path: Path) -> Text:
    return written(tmp_path / "text")


def slow_pairs(window: int) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = defaultdict(float)
    for each in sentences(96):
        words = [word for word, _, _ in words_of(each)]
        for i, one in enumerate(words):
            for j, other in enumerate(words):
                if i != j and abs(i - j) <= window:
                    found[one, other] += 1 / abs(i - j)
    return found


@pytest.mark.parametrize(("bound", "block"), [(10**9, 10**9), (300, 100), (1, 50)])
def test_pairs_are_counted_as_by_hand_however_little_is_held(
    bound: int, block: int, text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stillvec.baselines.cooccurrence._WORDS", block)
    runs = drained(count_pairs(text, 4, tmp_path, bound))
    assert (len(runs) > 1) == (bound < 10**9)
    wanted = np.zeros((len(text.vocabulary),) * 2)
    for (one, other), count in slow_pairs(4).items():
        wanted[text.vocabulary.index[one], text.vocabulary.index[other]] = count
    whole = np.concatenate([rows.toarray() for _, rows in added(runs, bound)])
    assert np.allclose(whole, wanted, rtol=1e-5)
    shares = dealt(runs, 3, tmp_path, 0, bound)
    parts = [share.rows(0, len(wanted)).toarray() for share in shares]
    assert np.allclose(sum(parts), wanted, rtol=1e-5)
    assert all(((parts[a] > 0) & (parts[b] > 0)).sum() == 0 for a, b in ((0, 1), (0, 2), (1, 2)))
    assert min(len(share.counts) for share in shares) > len(runs[0].counts) / 10


@pytest.fixture
def factors(text: Text, tmp_path: Path) -> tuple[Factors, Run]:
    """A model with everything filled with something, and all pairs."""
    pytest.importorskip("numba")
    runs = drained(count_pairs(text, 5, tmp_path))
    (share,) = dealt(runs, 1, tmp_path, 0)
    model = Factors(Glove(dim=6, window=5, x_max=3.0, alpha=0.6, rate=0.3), len(text.vocabulary))
    choose = np.random.default_rng(1)
    for table in (model.words, model.contexts):
        table[:] = choose.normal(size=table.shape) / 2
    for table in model.squares:
        table[:] = 1 + choose.random(table.shape)
    return model, share.held()


def pair_loss(word: torch.Tensor, context: torch.Tensor, count: float) -> torch.Tensor:
    """The paper's, with x_max 3 and alpha 0.6."""
    distance = word[:-1] @ context[:-1] + word[-1] + context[-1] - math.log(count)
    return min(1.0, (count / 3.0) ** 0.6) * distance**2


def test_steps_of_glove_are_adagrads_by_autograd_pair_by_pair(factors: tuple[Factors, Run]) -> None:
    model, share = factors
    order = np.random.default_rng(2).permutation(len(model.words))[:12]
    tables = [torch.from_numpy(each).double() for each in (model.words, model.contexts, *model.squares)]
    wanted = 0.0
    for i in order.tolist():
        for place in range(share.starts[i], share.starts[i + 1]):
            rows = (i, int(share.columns[place]))
            pair = [tables[at][row].clone().requires_grad_() for at, row in enumerate(rows)]
            loss = pair_loss(*pair, float(share.counts[place]))
            loss.backward()
            wanted += loss.item()
            for at, row in enumerate(rows):
                slope = 0.3 * pair[at].grad / 2  # type: ignore[operator]
                tables[at][row] -= slope / tables[at + 2][row].sqrt()
                tables[at + 2][row] += slope**2
    assert model.learn(share, 1, order, 0) == pytest.approx(wanted, rel=1e-4)
    for got, each in zip((model.words, model.contexts, *model.squares), tables, strict=True):
        assert np.allclose(got, each, atol=1e-4)


def test_the_loss_of_glove_is_the_papers_sum_and_falls(text: Text, factors: tuple[Factors, Run]) -> None:
    model, share = factors
    rows = {word: torch.from_numpy(model.words[row].copy()) for word, row in text.vocabulary.index.items()}
    others = {word: torch.from_numpy(model.contexts[row].copy()) for word, row in text.vocabulary.index.items()}
    wanted = sum(float(pair_loss(rows[one], others[other], x)) for (one, other), x in slow_pairs(5).items())
    still = Factors(Glove(dim=6, window=5, x_max=3.0, alpha=0.6, rate=1e-12), len(text.vocabulary))
    still.words, still.contexts = model.words.copy(), model.contexts.copy()
    order = np.arange(len(model.words))
    assert still.learn(share, 1, order, 0) == pytest.approx(wanted, rel=1e-4)
    losses = [model.learn(share, 1, order, 0) for _ in range(30)]
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("pieces", [1, 2, 7, 500])
def test_every_word_of_a_share_is_in_one_piece_and_pieces_have_about_as_many_pairs(
    pieces: int, factors: tuple[Factors, Run]
) -> None:
    model, share = factors
    order = np.random.default_rng(0).permutation(len(model.words))
    made = [*cut(share, order, pieces)]
    assert len(made) == pieces
    assert np.concatenate(made).tolist() == order.tolist()
    held = np.diff(share.starts)
    assert max(held[piece].sum() for piece in made) <= len(share.counts) / pieces + held.max()


def test_glove_learns_each_word_that_has_neighbours(text: Text) -> None:
    pytest.importorskip("numba")
    made = drained(Glove(dim=5, epochs=60).steps(text, ONE))
    assert made.vectors.words == text.vocabulary.words
    assert made.notes["loss"] < 0.2
    assert made.notes["pairs"] == len(slow_pairs(10))


def test_glove_gives_its_words_or_what_they_and_contexts_add_up_to(factors: tuple[Factors, Run]) -> None:
    model, _ = factors
    assert np.allclose(model.result(), model.words[:, :6])
    model.settings = Glove(dim=6, add_contexts=True)
    assert np.allclose(model.result(), (model.words + model.contexts)[:, :6])
