"""X2Static against torch's autograd and SparseAdam, a convex solver, and its closed form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize
from tiny_corpus import collect_statistics, counted, matrix_of, sentences
from tiny_teachers import tiny_teacher
from torch import Tensor

from stillvec.learners import x2static
from stillvec.learners.context_blocks import ContextBlock
from stillvec.learners.table_memory import FinishScale, finish_peak
from stillvec.learners.whitened_context import WhitenedContext
from stillvec.learners.x2static import LogisticTable, X2Static, X2StaticBatch, gradient_per_target, gradient_shared
from stillvec.registry import settings_from
from stillvec.teachers.device import torch_threads
from stillvec.training.loop_compiler import COMPILER_BYTES
from stillvec.training.negative_sampling import NegativeSampler, keep_probability
from stillvec.training.optimizers import RowAdam
from stillvec.training.schedule import Schedule
from stillvec.vocabulary import Vocabulary

WORDS = 7


def random(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def a_batch(*, bias: bool) -> tuple[Tensor, X2StaticBatch]:
    """Five sentences, one without a target; word 2 is a target of three, and twice of one of them."""
    table = torch.randn(WORDS, 4 + bias, generator=random(1), dtype=torch.float64)
    contexts = torch.randn(5, 4, generator=random(2), dtype=torch.float64)
    contexts = F.pad(contexts, (0, 1), value=1.0) if bias else contexts
    words = torch.tensor([2, 0, 2, 5, 2, 2, 1])
    sentence = torch.tensor([0, 0, 1, 1, 3, 3, 4])
    return table, X2StaticBatch(contexts, words, sentence)


def dense(rows: Tensor, gradient: Tensor) -> Tensor:
    assert len(torch.unique(rows)) == len(rows), "each row comes once"
    return torch.zeros(WORDS, gradient.shape[1], dtype=gradient.dtype).index_add_(0, rows, gradient)


def written(table: Tensor, batch: X2StaticBatch, negatives: list[list[int]], weight: float = 1.0) -> Tensor:
    """The objective as the paper writes it, target by target."""
    total = torch.zeros((), dtype=table.dtype)
    for number, (word, sentence) in enumerate(zip(batch.words.tolist(), batch.sentence.tolist(), strict=True)):
        context = batch.contexts[sentence]
        total = total - F.logsigmoid(table[word] @ context)
        for negative in negatives[number]:
            total = total - weight * F.logsigmoid(-(table[negative] @ context))
    return total


def check_against_autograd(
    table: Tensor, batch: X2StaticBatch, negatives: list[list[int]], weight: float, got: tuple[Tensor, Tensor, Tensor]
) -> None:
    leaf = table.clone().requires_grad_()
    loss = written(leaf, batch, negatives, weight)
    (wanted,) = torch.autograd.grad(loss, leaf)
    rows, gradient, reported_loss = got
    assert torch.allclose(dense(rows, gradient), wanted, rtol=1e-10)
    assert float(reported_loss) == pytest.approx(float(loss.detach()), rel=1e-10)
    assert set(rows.tolist()) == {*batch.words.tolist(), *(each for some in negatives for each in some)}


@pytest.mark.parametrize("bias", [False, True])
def test_the_gradient_is_autograds(bias: bool) -> None:
    table, batch = a_batch(bias=bias)
    negatives = torch.tensor([[2, 3, 3], [0, 2, 6], [5, 5, 5], [4, 0, 2], [1, 6, 2], [6, 6, 0], [3, 1, 2]])
    assert (negatives == batch.words[:, None]).any(), "a negative equals its target"
    check_against_autograd(table, batch, negatives.tolist(), 1.0, gradient_per_target(table, batch, negatives))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("drawn", [[2, 3, 3, 6], [4], [0, 1, 2, 3, 4, 5, 6]])
def test_the_gradient_of_shared_negatives_is_autograds(bias: bool, drawn: list[int]) -> None:
    table, batch = a_batch(bias=bias)
    got = gradient_shared(table, batch, torch.tensor(drawn), 10)
    check_against_autograd(table, batch, [drawn] * len(batch.words), 10 / len(drawn), got)


@pytest.mark.parametrize("bias", [False, True])
def test_padding_changes_nothing(bias: bool) -> None:
    """Two steps, the second with more targets than the first and one sentence without any."""
    form = X2Static(bias=bias, whiten=False, start="random", shared_negatives=0, batch=2, subsample=1e9, negatives=3)
    counts, width = torch.arange(1, WORDS + 1), 4
    block = ContextBlock(
        torch.tensor([2, 0, 1, 2, -1, -1, 2, 6, 6, 1]),
        torch.tensor([1, 3, 2, 4]),
        torch.randn(4, width, generator=random(2)),
        None,
    )
    models = [LogisticTable(form, counts, [], width, torch.device("cpu"), padded=padded) for padded in (False, True)]
    losses = []
    for model in models:
        model.sampler.draw = lambda shape, _: torch.full(shape, 3)  # type: ignore[method-assign]
        results = [*model.train_block(block, generator=random(1), lr_at=lambda progress: 0.1 - 0.05 * progress)]
        results += model.train_block(block, generator=random(1), lr_at=lambda progress: 0.04)
        losses.append((sum(float(result.loss) for result in results), sum(result.n_targets for result in results)))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    plain, padded = (model.tensors() for model in models)
    for name, tensor in plain.items():
        assert torch.allclose(tensor, padded[name], atol=1e-5), name
    assert not models[1].optimizer.whole[0][WORDS].any(), "the spare row"


def test_shared_negatives_have_the_expectation_of_negatives_for_each_target() -> None:
    """Exact: both gradients are sums over the negatives, so the expectation is over one draw."""
    table, batch = a_batch(bias=True)
    shares = NegativeSampler(torch.tensor([40, 30, 20, 9, 4, 1, 1]), 0.5).probabilities.double()
    each, shared = torch.zeros_like(table), torch.zeros_like(table)
    for word, share in enumerate(shares):
        rows, gradient, _ = gradient_per_target(table, batch, torch.full((len(batch.words), 3), word))
        each += share * dense(rows, gradient)
        rows, gradient, _ = gradient_shared(table, batch, torch.tensor([word] * 5), 3)
        shared += share * dense(rows, gradient)
    assert torch.allclose(each, shared, rtol=1e-6)


def test_steps_are_those_of_sparse_adam() -> None:
    start = torch.randn(WORDS, 5, generator=random(3))
    mine = RowAdam(start.clone())
    theirs = torch.nn.Parameter(start.clone())
    adam = torch.optim.SparseAdam([theirs], lr=0.02)
    for step, rows in enumerate([[0, 3], [3, 5, 6], [0], [6, 3], [1, 2, 3, 4], [0, 5]]):
        gradient = torch.randn(len(rows), 5, generator=random(10 + step))
        rate = 0.02 / (step + 1)
        adam.param_groups[0]["lr"] = rate
        theirs.grad = torch.sparse_coo_tensor(torch.tensor([rows]), gradient, (WORDS, 5), check_invariants=True)
        adam.step()
        mine.update(torch.tensor(rows), gradient.clone(), rate)
        assert torch.allclose(mine.table, theirs.detach(), atol=1e-6)


@pytest.mark.slow  # compiles for seconds
def test_compiled_steps_are_those_of_torch_whatever_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(x2static, "_MIN_COMPILED", 1)
    settings = X2Static(bias=True, negatives=4, epochs=1)
    contexts = F.pad(torch.randn(6, 8, generator=random(1)), (0, 1), value=1.0)
    words = torch.randint(500, (400,), generator=random(2))
    sentence = torch.randint(6, (400,), generator=random(3)).sort().values
    tables, losses = [], []
    for n_threads, compiled in ((1, False), (1, True), (3, True)):
        model = LogisticTable(settings, torch.ones(500), [], 8, torch.device("cpu"))
        assert model.update_rows is not None
        if not compiled:
            model.update_rows = None
        with torch_threads(n_threads):
            losses.append(
                [float(model.step(X2StaticBatch(contexts, words, sentence), random(4), 0.1)) for _ in range(3)]
            )
        tables.append(model.table.clone())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    torch.testing.assert_close(tables[0], tables[1], rtol=1e-4, atol=1e-5)
    assert torch.equal(tables[1], tables[2])
    assert losses[1] == losses[2]


def test_a_small_table_is_not_compiled_for() -> None:
    assert LogisticTable(X2Static(), torch.ones(9), [], 8, torch.device("cpu")).update_rows is None


def test_subsampling_keeps_the_papers_share() -> None:
    counts = torch.tensor([9000, 900, 90, 10, 0])
    wanted = [min(1.0, (0.001 / f) ** 0.5 + 0.001 / f) for f in (0.9, 0.09, 0.009)] + [1.0, 1.0]
    assert keep_probability(counts, 0.001).tolist() == pytest.approx(wanted)


@pytest.mark.parametrize("shared", [0, 16])
def test_targets_are_left_out_by_their_share_and_unknown_words_are_none(shared: int) -> None:
    """The positive part of the loss at a zero table counts the targets: log 2 each, and 10 times that for negatives."""
    choose = np.random.default_rng(0)
    words = choose.choice(5, 20_000, p=[0.6, 0.2, 0.1, 0.05, 0.05]) - 1  # -1: unknown
    counts = torch.tensor([int((words == row).sum()) for row in range(4)])
    settings = X2Static(subsample=0.01, whiten=False, bias=False, start="zero", shared_negatives=shared, batch=100)
    model = settings.model(counts, [], 3, torch.device("cpu"))
    shard = ContextBlock(torch.tensor(words), torch.full((2000,), 10), torch.zeros(2000, 3), None)
    seen = [*model.train_block(shard, generator=random(), lr_at=Schedule().lr_at)]
    share = counts / counts.sum()
    wanted = (counts * ((0.01 / share) ** 0.5 + 0.01 / share).clamp_max(1)).sum()
    targets = sum(count for _, count, _ in seen)
    assert targets == pytest.approx(float(wanted), rel=0.03)
    assert float(sum(loss for loss, _, _ in seen)) == pytest.approx(11 * np.log(2) * targets, rel=1e-4)
    assert [step for _, _, step in seen] == pytest.approx(np.arange(20) / 20)


@pytest.mark.parametrize("power", [0.5, 0.75, 1.0])
def test_noise_is_drawn_in_proportion_to_a_power_of_the_counts(power: float) -> None:
    counts = torch.tensor([1000, 0, 300, 100, 10, 1, 0])
    noise = NegativeSampler(counts, power)
    drawn = torch.bincount(noise.draw((500, 1000), random()).reshape(-1), minlength=len(counts))
    weights = counts.double() ** power * (counts > 0)
    assert (drawn / drawn.sum()).tolist() == pytest.approx((weights / weights.sum()).tolist(), abs=2e-3)
    assert noise.probabilities.tolist() == pytest.approx((weights / weights.sum()).tolist())
    assert drawn[1] == drawn[6] == 0


def a_tiny_text() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    choose = np.random.default_rng(4)
    contexts = choose.normal(size=(60, 3)).astype(np.float16).astype(np.float64)
    lengths = choose.integers(1, 6, 60)
    centre = np.repeat(contexts, lengths, axis=0)
    likes = centre @ choose.normal(size=(3, 5)) + choose.gumbel(size=(len(centre), 5)) + [1.5, 1, 0.5, 0, -0.5]
    return likes.argmax(1), lengths, contexts


def solved(word: int, power: float, negatives: int, *, bias: bool) -> np.ndarray:
    """The minimum for one word, its expected negatives as weights."""
    words, lengths, contexts = a_tiny_text()
    sentence = np.repeat(np.arange(60), lengths)
    full = np.concatenate([contexts, np.ones((60, 1))], axis=1) if bias else contexts
    counts = np.bincount(words, minlength=5).astype(float)
    noise = (counts**power / (counts**power).sum())[word]

    def objective(row: np.ndarray) -> float:
        right = np.logaddexp(0, -(full[sentence[words == word]] @ row)).sum()
        return float(right + negatives * noise * (lengths * np.logaddexp(0, full @ row)).sum())

    return np.asarray(minimize(objective, np.zeros(full.shape[1]), method="BFGS").x)


@pytest.mark.parametrize(
    ("shared", "bias", "start"), [(2048, True, "zero"), (0, True, "random"), (2048, False, "zero")]
)
def test_training_ends_at_the_minimum_that_a_convex_solver_finds(shared: int, bias: bool, start: str) -> None:
    words, lengths, contexts = a_tiny_text()
    settings = X2Static(
        epochs=500,
        rate=0.1,
        batch=60,
        shared_negatives=shared,
        negatives=4,
        subsample=1.0,
        whiten=False,
        bias=bias,
        start=start,
    )
    device = torch.device("cpu")
    model = settings.model(torch.tensor(np.bincount(words)), [], 3, device)
    shard = ContextBlock(torch.tensor(words), torch.tensor(lengths), torch.tensor(contexts).float(), None)
    generator, schedule = random(), settings.schedule()
    for epoch in range(500):
        lr = schedule.lr_at(epoch / 500)
        for _ in model.train_block(shard, generator=generator, lr_at=lambda _, lr=lr: lr):
            pass
    wanted = np.stack([solved(word, 0.5, 4, bias=bias) for word in range(5)])
    assert np.abs(wanted).max() > 0.5, "there is something to find"
    assert np.abs(model.table.numpy() - wanted).max() < 0.06
    assert np.array_equal(model.result()["vectors"].numpy(), model.table[:, :3].numpy())


@pytest.mark.parametrize("negatives", [1, 5])
@pytest.mark.parametrize("start", ["zero", "closed"])
def test_biases_start_at_the_log_odds_of_a_word_in_an_average_context(start: str, negatives: int) -> None:
    """log(targets / negatives) of the word, less the mean logit of its vector: half its squared length."""
    words, lengths, contexts = a_tiny_text()
    block = ContextBlock(torch.tensor(words), torch.tensor(lengths), torch.tensor(contexts).float(), None)
    counts = np.bincount(words)
    settings = X2Static(negatives=negatives, subsample=1.0, start=start, whiten=True, bias=True)
    table = settings.model(torch.tensor(counts), [block], 3, torch.device("cpu")).table.double().numpy()
    drawn = np.sqrt(counts) / np.sqrt(counts).sum()  # power 0.5
    odds = counts / (negatives * counts.sum() * drawn)
    half = (table[:, :3] ** 2).sum(1) / 2
    assert (half.max() > 0.1) == (start == "closed")
    assert table[:, 3] == pytest.approx(np.log(odds) - half, abs=1e-5)


@pytest.mark.parametrize("directions", [0, 3])
def test_without_an_epoch_a_closed_start_is_whitened_context(directions: int) -> None:
    texts = sentences(72)
    vocabulary = counted(texts)
    teacher = tiny_teacher([*vocabulary][::2])
    settings = X2Static(epochs=0, whiten=True, start="closed", directions=directions)
    start = matrix_of(settings, teacher, vocabulary, texts)
    closed = matrix_of(WhitenedContext(directions=directions), teacher, vocabulary, texts)
    assert np.abs(start - closed).max() < 0.01 * np.abs(closed).max()  # halves are kept


def test_a_start_from_the_closed_form_is_better_than_none_whether_or_not_contexts_are_whitened() -> None:
    texts = sentences(72)
    vocabulary = counted(texts)
    learner = X2Static()
    statistics = collect_statistics({"it": learner}, tiny_teacher([*vocabulary]), vocabulary, texts)["it"]
    loss = {}
    for whiten in (True, False):
        for start in ("closed", "zero"):
            chosen = X2Static(
                epochs=1, whiten=whiten, bias=True, start=start, rate=1e-9, subsample=1.0, batch=1_000_000,
                shared_negatives=1024,
            )  # fmt: skip
            loss[whiten, start] = float(str(chosen.finish(statistics).notes["loss"]))
    assert loss[True, "closed"] < 0.95 * loss[True, "zero"]
    assert loss[False, "closed"] == pytest.approx(loss[True, "closed"], rel=0.01)


def test_the_papers_settings_are_the_papers() -> None:
    paper = settings_from(X2Static, {"settings": "gupta-jaggi-2021"})
    assert (paper.epochs, paper.rate, paper.batch, paper.negatives, paper.subsample) == (1, 1e-3, 128, 10, 5e-6)
    assert (paper.power, paper.shared_negatives, paper.layer, paper.decay) == (0.5, 0, "last", "constant")
    assert not paper.whiten
    assert not paper.bias
    assert (paper.start, paper.directions) == ("random", 0)
    assert (
        settings_from(X2Static, {"settings": "gupta-jaggi-2021", "context": "paragraph"}).contexts().min_sentences == 3
    )


def test_the_memory_told_includes_that_of_the_compiler() -> None:
    words = Vocabulary([f"w{number}" for number in range(2048)], [1] * 2048)
    few, many = (
        FinishScale(words, 511),
        FinishScale(words, 512),
    )  # a table of 2^20 numbers is trained by a compiled loop
    assert finish_peak(X2Static(), many) - finish_peak(X2Static(), few) > COMPILER_BYTES
    assert finish_peak(X2Static(shared_negatives=5), many) - finish_peak(X2Static(shared_negatives=5), few) < 1e6
    (streamed,) = X2Static(stream=True).specs().values()
    assert streamed.text_bytes(tiny_teacher(["w"]), words, 9, 1) < COMPILER_BYTES  # 16 dimensions


@pytest.mark.slow
def test_the_compiler_takes_no_more_than_is_told(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    code = """
import torch
from stillvec.memory import peak_memory, reset_peak, resident_memory
from stillvec.learners.x2static import _find_compiled_step
state = [torch.ones(2049, 512) for _ in range(3)]
reset_peak()
before = resident_memory()
step = _find_compiled_step()
step(state, torch.ones(20, 512), torch.arange(500), torch.arange(500) % 20, 100, 0.1)
print(peak_memory() - before)
"""
    environment = {**os.environ, "STILLVEC_CACHE": str(tmp_path)}  # nothing is compiled yet
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert 0.5 * COMPILER_BYTES < int(done.stdout) <= COMPILER_BYTES
