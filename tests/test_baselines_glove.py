"""GloVe against a second way: pairs counted by hand, the paper's sum, autograd, steps written out."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse
from tiny_corpus import sentences, words_of
from tiny_text import ONE, drained, written

from stillvec.baselines import EncodedCorpus
from stillvec.baselines.glove import (
    Glove,
    GloveJob,
    GloveModel,
    SortedRun,
    count_pairs,
    split_counts,
    sum_runs,
    thread_rounds,
)


@pytest.fixture
def text(tmp_path: Path) -> EncodedCorpus:
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
    bound: int, block: int, text: EncodedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stillvec.baselines.glove._WORDS", block)
    runs = drained(count_pairs(text, 4, tmp_path, bound))
    assert (len(runs) > 1) == (bound < 10**9)
    wanted = np.zeros((len(text.vocabulary),) * 2)
    for (one, other), count in slow_pairs(4).items():
        wanted[text.vocabulary.index[one], text.vocabulary.index[other]] = count
    whole = np.concatenate([rows.toarray() for _, rows in sum_runs(runs, bound)])
    assert np.allclose(whole, wanted, rtol=1e-5)
    shares = split_counts(runs, 3, tmp_path, 0, bound)
    parts = [share.rows(0, len(wanted)).toarray() for share in shares]
    assert np.allclose(sum(parts), wanted, rtol=1e-5)
    assert all(((parts[a] > 0) & (parts[b] > 0)).sum() == 0 for a, b in ((0, 1), (0, 2), (1, 2)))
    assert min(len(share.counts) for share in shares) > len(runs[0].counts) / 10


@pytest.fixture
def factors(text: EncodedCorpus, tmp_path: Path) -> tuple[GloveModel, SortedRun]:
    """A model with everything filled with something, and all pairs."""
    pytest.importorskip("numba")
    runs = drained(count_pairs(text, 5, tmp_path))
    (share,) = split_counts(runs, 1, tmp_path, 0)
    model = GloveModel(Glove(dim=6, window=5, x_max=3.0, alpha=0.6, rate=0.3), len(text.vocabulary))
    choose = np.random.default_rng(1)
    for numbers, squares in zip(*halves(model), strict=True):
        numbers[:] = choose.normal(size=numbers.shape) / 2
        squares[:] = 1 + choose.random(squares.shape)
    return model, share.load()


def halves(model: GloveModel) -> list[list[np.ndarray]]:
    """Vectors of words and contexts and their biases, apart, and squares of each: views (V, 6) and (V,)."""
    sides = ((model.words, 6), (model.contexts, 7))
    return [[part for table, bias in sides for part in (table[:, at, :6], table[:, at, bias])] for at in (0, 1)]


def rows_of(model: GloveModel) -> list[torch.Tensor]:
    """Tables of words and contexts, the bias last, and of squares of each (V, 7)."""
    parts = [each for half in halves(model) for each in half]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [torch.from_numpy(np.column_stack(pair)).double() for pair in pairs]


def pair_loss(word: torch.Tensor, context: torch.Tensor, count: float) -> torch.Tensor:
    """The paper's, with x_max 3 and alpha 0.6."""
    distance = word[:-1] @ context[:-1] + word[-1] + context[-1] - math.log(count)
    return min(1.0, (count / 3.0) ** 0.6) * distance**2


def test_steps_of_glove_are_adagrads_by_autograd_pair_by_pair(factors: tuple[GloveModel, SortedRun]) -> None:
    model, share = factors
    order = np.random.default_rng(2).permutation(len(model.words))[:12]
    tables = rows_of(model)
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
    assert model.train_job(GloveJob(share, order, (0, len(model.words)))).loss == pytest.approx(wanted, rel=1e-5)
    for got, each in zip(rows_of(model), tables, strict=True):
        assert np.allclose(got, each, rtol=1e-5, atol=1e-6)


def test_the_loss_of_glove_is_the_papers_sum_and_falls(
    text: EncodedCorpus, factors: tuple[GloveModel, SortedRun]
) -> None:
    model, share = factors
    words, contexts, *_ = rows_of(model)
    rows = {word: words[row] for word, row in text.vocabulary.index.items()}
    others = {word: contexts[row] for word, row in text.vocabulary.index.items()}
    wanted = sum(float(pair_loss(rows[one], others[other], x)) for (one, other), x in slow_pairs(5).items())
    still = GloveModel(Glove(dim=6, window=5, x_max=3.0, alpha=0.6, rate=1e-12), len(text.vocabulary))
    still.words, still.contexts = model.words.copy(), model.contexts.copy()
    order = np.arange(len(words))
    halves = [still.train_job(GloveJob(share, order, contexts)) for contexts in ((0, 5), (5, len(words)))]
    assert sum(half.loss for half in halves) == pytest.approx(wanted, rel=1e-5)
    assert sum(half.n_targets for half in halves) == len(share.counts)
    losses = [model.train_job(GloveJob(share, order, (0, len(words)))).loss for _ in range(30)]
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("threads", [1, 2, 7, 500])
def test_every_pair_has_its_turn_and_no_two_threads_a_row_in_common(
    threads: int, factors: tuple[GloveModel, SortedRun]
) -> None:
    model, share = factors
    size = len(model.words)
    order = np.random.default_rng(0).permutation(size)
    met = np.zeros((size, size), int)
    for jobs in thread_rounds(share, order, threads):
        assert len(jobs) == threads
        words, columns = [job.words for job in jobs], [np.arange(*job.contexts) for job in jobs]
        for mine in (words, columns):
            assert sorted(np.concatenate(mine).tolist()) == [*range(size)]
        for some, others in zip(words, columns, strict=True):
            met[np.ix_(some, others)] += 1
        for mine, held in ((words, np.diff(share.starts)), (columns, np.bincount(share.columns))):
            assert max(held[each].sum() for each in mine) <= len(share.counts) / threads + held.max()
    assert (met == 1).all()


def test_rows_of_glove_have_no_line_of_memory_in_common(factors: tuple[GloveModel, SortedRun]) -> None:
    for table in (factors[0].words, factors[0].contexts):
        assert table.flags["C_CONTIGUOUS"]
        assert table.ctypes.data % 64 == table.strides[0] % 64 == table.strides[1] % 64 == 0


def test_padding_of_glove_rows_does_not_change(factors: tuple[GloveModel, SortedRun]) -> None:
    model, share = factors
    model.train_job(GloveJob(share, np.arange(len(model.words)), (0, len(model.words))))
    for table, one in ((model.words, 7), (model.contexts, 6)):
        assert (table[:, 0, one] == 1).all()
        assert not table[:, 0, 8:].any()


def test_glove_learns_each_word_that_has_neighbours(text: EncodedCorpus) -> None:
    pytest.importorskip("numba")
    made = drained(Glove(dim=5, epochs=60).steps(text, ONE))
    assert made.vectors.words == text.vocabulary.words
    assert made.notes["loss"] < 0.2
    assert made.notes["pairs"] == len(slow_pairs(10))


def test_glove_gives_its_words_or_what_they_and_contexts_add_up_to(factors: tuple[GloveModel, SortedRun]) -> None:
    model, _ = factors
    assert np.allclose(model.result(), model.words[:, 0, :6])
    model.settings = Glove(dim=6, add_contexts=True)
    assert np.allclose(model.result(), (model.words + model.contexts)[:, 0, :6])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a device of Linux")
def test_counts_that_do_not_fit_on_the_disk_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "run.columns").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        SortedRun.write(sparse.csr_matrix(np.eye(3)), tmp_path / "run")
