"""Attentive skip-gram and Context-to-Vec against slow loops over centres, written from the papers' equations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from stillvec.learners.attentive_skipgram import AttentiveSkipgram
from stillvec.learners.context_blocks import ContextBlock
from stillvec.learners.context_to_vec import ContextToVec
from stillvec.learners.windows import WindowLearner, WindowTable, attend, make_windows
from stillvec.registry import settings_from
from stillvec.training.optimizers import clip_gradients
from stillvec.training.schedule import Schedule

CPU = torch.device("cpu")
WORDS, WIDTH, DIM = 12, 6, 4
LENGTHS = [5, 1, 9, 3, 2, 4]  # longest is 8 here, so the third is not used
TEXT = [3, -1, 4, 4, 5,  6,  7, 8, 7, 8, 7, 8, 7, 8, 7,  -1, 9, -1,  -1, -1,  5, 10, 3, -1]  # fmt: skip
NEVER = {0, 1, 2, 11}  # words that the text has not
PLAIN = {"dim": DIM, "window": 2, "optimizer": "sgd", "clip": 0.0, "whiten": False, "start": "random", "max_length": 8}


def random(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def form_of(**settings: Any) -> WindowLearner:
    return ContextToVec(**{**PLAIN, **settings})


def a_shard() -> ContextBlock:
    states = torch.randn(len(TEXT), WIDTH, generator=random(1))
    return ContextBlock(torch.tensor(TEXT), torch.tensor(LENGTHS), torch.zeros(len(LENGTHS), WIDTH), states)


class Drawn:
    """Negatives that are remembered; in turn words that the text has and one that it has not."""

    def __init__(self) -> None:
        self.last = torch.zeros(0)

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        self.last = (torch.arange(int(np.prod(shape))) * 7 % 9 + 2).reshape(shape)
        return self.last


def a_model(form: WindowLearner, *, padded: bool = False) -> WindowTable:
    """Large numbers, so that no term is nearly linear."""
    model = WindowTable(form, torch.arange(1, WORDS + 1), [a_shard()], WIDTH, CPU, padded=padded)
    model.table.copy_(torch.randn(model.table.shape, generator=random(2)))
    for number, each in enumerate(model.projections):
        each.copy_(0.6 * torch.randn(each.shape, generator=random(3 + number)))
    model.mean.copy_(0.3 * torch.randn(WIDTH, generator=random(9)))
    model.sampler = Drawn()  # type: ignore[assignment]
    return model


def soft(x: float) -> float:
    return float(np.logaddexp(0, -x))


def slow_centre(form: WindowLearner, states: np.ndarray, at: int, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """u at one place of one sentence."""
    own = (states[at] - arrays["mean"]) @ arrays["first"]
    if not form.context_weight:
        return np.asarray(own)
    near = [at + k for k in range(-form.window, form.window + 1) if k and 0 <= at + k < len(states)]
    mean = np.mean([states[k] - arrays["mean"] for k in near], axis=0) if near else np.zeros(WIDTH)
    mean = np.tanh(mean) if form.activation == "tanh" else mean
    return np.asarray((1 - form.context_weight) * own + form.context_weight * (mean @ arrays["second"]))


def slow_window(form: WindowLearner, words: list[int], at: int) -> list[int]:
    """The places of the known words around one place of one sentence."""
    reach = range(-form.window, form.window + 1)
    return [at + k for k in reach if (k or form.include_center) and 0 <= at + k < len(words) and words[at + k] >= 0]


def slow_right(form: WindowLearner, u: np.ndarray, rows: np.ndarray) -> float:
    """What a centre (dim,) pays for the rows (n, dim or dim + 1) around it."""
    full = np.append(u, 1.0) if form.bias else u
    if form.pool == "each":
        return float(np.mean([soft(float(row @ full)) for row in rows]))
    weight = np.ones(len(rows))
    if form.pool == "mean":
        weight = weight / len(rows)
    if form.pool == "attention":
        weight = np.exp([form.attention * float(row[:DIM] @ u) for row in rows])
        weight = weight / weight.sum()
    return soft(float((weight[:, None] * rows).sum(0) @ full))


def slow_loss(
    form: WindowLearner, arrays: dict[str, np.ndarray], negatives: np.ndarray, *, padded: bool = False
) -> tuple[float, int]:
    """A padded step has negatives for every word of a sentence that it may use, another for every centre."""
    states, table = a_shard().states.double().numpy(), arrays["table"]  # type: ignore[union-attr]
    total, count, first, place = 0.0, 0, 0, -1
    for length in LENGTHS:
        words, here = TEXT[first : first + length], states[first : first + length]
        first += length
        for at in range(length if form.min_length <= length <= form.max_length else 0):
            place += 1
            near = slow_window(form, words, at)
            if not near:
                continue
            u = slow_centre(form, here, at, arrays)
            total += slow_right(form, u, table[[words[k] for k in near]]) + form.norm_reward * soft(float(u @ u))
            full = np.append(u, 1.0) if form.bias else u
            drawn, weight = (
                (negatives, form.negatives / len(negatives))
                if form.shared_negatives
                else (negatives[place if padded else count], 1.0)
            )
            total += weight * sum(soft(-float(table[row] @ full)) for row in drawn)
            count += 1
    return total, count


FORMS = {
    "wang": {"pool": "attention", "context_weight": 0.0, "attention": 1.0, "shared_negatives": 0, "bias": False},
    "wang, with a bias": {
        "pool": "attention",
        "context_weight": 0.0,
        "attention": 0.7,
        "shared_negatives": 0,
        "bias": True,
    },
    "wang, shared": {
        "pool": "attention",
        "context_weight": 0.0,
        "attention": 0.1,
        "shared_negatives": 5,
        "bias": True,
        "include_center": True,
    },
    "wang, figure 5": {"pool": "sum", "context_weight": 0.0, "shared_negatives": 0, "bias": False},
    "zheng": {"pool": "sum", "context_weight": 0.5, "norm_reward": 1.0, "shared_negatives": 0, "bias": False},
    "zheng, squashed": {
        "pool": "sum",
        "context_weight": 0.3,
        "activation": "tanh",
        "norm_reward": 0.2,
        "shared_negatives": 0,
        "bias": True,
    },
    "zheng, shared": {
        "pool": "mean",
        "context_weight": 0.5,
        "shared_negatives": 7,
        "bias": True,
        "include_center": True,
    },
    "zheng, attending": {
        "pool": "attention",
        "context_weight": 0.8,
        "attention": 1.0,
        "shared_negatives": 3,
        "bias": True,
    },
    "each": {
        "pool": "each",
        "context_weight": 0.5,
        "shared_negatives": 0,
        "bias": True,
        "include_center": True,
        "norm_reward": 0.5,
    },
    "each, shared": {"pool": "each", "context_weight": 0.0, "shared_negatives": 5, "bias": False, "window": 3},
    "only neighbours": {
        "pool": "mean",
        "context_weight": 1.0,
        "window": 1,
        "shared_negatives": 0,
        "bias": True,
        "min_length": 3,
    },
}


@pytest.mark.parametrize("name", FORMS)
def test_loss_and_gradient_are_those_of_a_slow_loop(name: str) -> None:
    """The step of plain descent gives the gradient; the loop's is taken by finite differences."""
    form = form_of(**{"include_center": False, "projection_rate": 0.5, **FORMS[name]})
    model = a_model(form)
    arrays = {"table": model.table, "mean": model.mean, "first": model.projections[0]}
    arrays |= {"second": model.projections[1]} if form.context_weight else {}
    before = {key: each.double().numpy().copy() for key, each in arrays.items()}
    (seen,) = model.train_block(a_shard(), generator=random(), lr_at=lambda _: 1.0)
    wanted, count = slow_loss(form, before, model.sampler.last.numpy())
    assert count == seen.n_targets > 5
    assert float(seen.loss) == pytest.approx(wanted, rel=1e-5)
    for key in before.keys() - {"mean"}:
        moved = (before[key] - arrays[key].double().numpy()) / (1.0 if key == "table" else 0.5)
        assert np.abs(moved - differences(form, before, key, model.sampler.last.numpy())).max() < 2e-4, key


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if not form["shared_negatives"]])
def test_a_padded_step_is_that_of_a_slow_loop(name: str) -> None:
    form = form_of(**{"include_center": False, "projection_rate": 0.5, "batch": 100, **FORMS[name]})
    model = a_model(form, padded=True)
    arrays = {"table": model.table, "mean": model.mean, "first": model.projections[0]}
    arrays |= {"second": model.projections[1]} if form.context_weight else {}
    before = {key: each.double().numpy().copy() for key, each in arrays.items()}
    seen = list(model.train_block(a_shard(), generator=random(), lr_at=lambda _: 1.0))
    (negatives,) = model.sampler.last.numpy()
    wanted, count = slow_loss(form, before, negatives, padded=True)
    assert sum(batch.n_targets for batch in seen) == count > 5
    assert float(sum(batch.loss for batch in seen)) == pytest.approx(wanted, rel=1e-5)
    for key in before.keys() - {"mean"}:
        moved = (before[key] - arrays[key].double().numpy()) / (1.0 if key == "table" else 0.5)
        assert np.abs(moved - differences(form, before, key, negatives, padded=True)).max() < 2e-4, key


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_padding_changes_nothing(optimizer: str) -> None:
    """Steps of two sentences, with the negatives of one word, end in the same table whether they are padded or not."""
    given = {**FORMS["zheng"], "include_center": False, "projection_rate": 0.5, "min_length": 1, "max_length": 100}
    given |= {"batch": 2, "optimizer": optimizer}
    models = [a_model(form_of(**given), padded=padded) for padded in (False, True)]
    for model in models:
        model.sampler.draw = lambda shape, _: torch.full(shape, 3)  # type: ignore[method-assign]
        for _ in range(3):
            list(model.train_block(a_shard(), generator=random(), lr_at=lambda progress: 0.02 - 0.019 * progress))
    plain, padded = (model.tensors() for model in models)
    assert plain.keys() == padded.keys()
    for name, tensor in plain.items():
        assert torch.allclose(tensor.float(), padded[name].float(), atol=1e-4), name


def differences(
    form: WindowLearner, arrays: dict[str, np.ndarray], key: str, negatives: np.ndarray, *, padded: bool = False
) -> np.ndarray:
    """The loop's gradient in one of its arrays."""
    found = np.zeros_like(arrays[key])
    for place in np.ndindex(*found.shape):
        values = []
        for step in (1e-5, -1e-5):
            changed = arrays[key].copy()
            changed[place] += step
            values.append(slow_loss(form, {**arrays, key: changed}, negatives, padded=padded)[0])
        found[place] = (values[0] - values[1]) / 2e-5
    return found


def test_attention_changes_the_table() -> None:
    """With weights held still the gradient would be another."""
    form = form_of(include_center=False, projection_rate=0.5, **FORMS["wang"])
    still, free = a_model(form), a_model(form)
    for _ in free.train_block(a_shard(), generator=random(), lr_at=lambda _: 1.0):
        pass
    flat = a_model(replace(form, attention=0.0))
    for _ in flat.train_block(a_shard(), generator=random(), lr_at=lambda _: 1.0):
        pass
    moves = [each.table - still.table for each in (free, flat)]
    assert float((moves[0] - moves[1]).abs().max()) > 0.1


@pytest.mark.parametrize("reach", [1, 2, 5])
@pytest.mark.parametrize("own", [False, True])
def test_windows_have_the_stated_size_and_end_with_the_sentence(reach: int, own: bool) -> None:
    lengths = [1, 4, 13, 2]
    sentence = torch.repeat_interleave(torch.arange(4), torch.tensor(lengths))
    place, there = make_windows(sentence, reach, include_center=own)
    first = 0
    for length in lengths:
        for at in range(first, first + length):
            wanted = [k for k in range(at - reach, at + reach + 1) if first <= k < first + length and (own or k != at)]
            assert place[at][there[at]].tolist() == wanted
        first += length
    assert place.shape[1] == 2 * reach + own


def test_no_words_have_no_windows() -> None:
    assert make_windows(torch.zeros(0, dtype=torch.int64), 3).position.shape == (0, 6)


def test_attention_is_a_softmax_over_the_words_that_are_there() -> None:
    centres, rows = torch.randn(50, 4, generator=random(1)), torch.randn(50, 6, 4, generator=random(2))
    there = torch.rand(50, 6, generator=random(3)) < 0.5
    there[0], there[1] = False, True
    found = attend(centres, rows, there, 1.7).double().numpy()
    for at in range(50):
        here = np.flatnonzero(there[at].numpy())
        assert (np.delete(found[at], here) == 0).all()
        if len(here):
            raised = np.exp([1.7 * float(rows[at, k].double() @ centres[at].double()) for k in here])
            assert found[at][here] == pytest.approx(raised / raised.sum(), rel=1e-4)
            assert found[at].sum() == pytest.approx(1.0)
    assert found[0].tolist() == [0.0] * 6


@pytest.mark.parametrize("shared", [0, 4])
@pytest.mark.parametrize("pool", ["attention", "mean", "each"])
def test_rows_that_no_window_and_no_negative_has_stay_where_they_are(shared: int, pool: str) -> None:
    """Adam moves a row that a batch touches, though its gradient be zero: the batch must not touch it."""
    model = a_model(form_of(optimizer="adam", shared_negatives=shared, pool=pool))
    model.optimizer.update(torch.arange(WORDS), torch.ones_like(model.table), 0.1)  # type: ignore[union-attr]
    before = model.table.clone()
    drawn = torch.tensor([3, 4])
    model.sampler.draw = lambda shape, generator: drawn[torch.arange(int(np.prod(shape))) % 2].reshape(shape)  # type: ignore[method-assign]
    for _ in model.train_block(a_shard(), generator=random(), lr_at=lambda _: 0.1):
        pass
    moved = {int(row) for row in torch.nonzero((model.table != before).any(1))}
    assert moved == {3, 4, 5, 9, 10}, "6 stands alone, 7 and 8 in a sentence that is too long"


def test_a_batch_without_a_centre_changes_nothing_and_is_not_reported() -> None:
    model = a_model(form_of(optimizer="adam", min_length=10))
    model.optimizer.update(torch.arange(WORDS), torch.ones_like(model.table), 0.1)
    before = model.table.clone()
    assert [*model.train_block(a_shard(), generator=random(), lr_at=lambda _: 0.1)] == []
    assert torch.equal(model.table, before)


def test_words_around_a_centre_are_left_out_by_their_share() -> None:
    """Word 0 is nearly always left out, word 1 never: a centre lives by its neighbours, not by itself."""
    words = torch.tensor([0, 1, 1, 0, 0] * 2000)
    shard = ContextBlock(words, torch.tensor([3, 2] * 2000), torch.zeros(4000, WIDTH), torch.zeros(len(words), WIDTH))
    model = WindowTable(
        form_of(include_center=False, subsample=0.01, batch=500), torch.tensor([9999, 1]), [], WIDTH, CPU
    )
    centres = sum(result.n_targets for result in model.train_block(shard, generator=random(), lr_at=Schedule().lr_at))
    assert centres == pytest.approx(2000 * 3 + 4000 * (0.1 + 0.01), rel=0.01)


@pytest.mark.parametrize(("size", "step"), [(50.0, 5.0), (3.0, 3.0)])
def test_gradients_are_clipped_at_the_norm_of_all_of_them(size: float, step: float) -> None:
    given = [torch.tensor([[3.0, 0.0]]) * size / 5, torch.tensor([0.0, 4.0]) * size / 5]
    found = clip_gradients(given, 5.0)
    assert float(torch.cat([each.flatten() for each in found]).norm()) == pytest.approx(step)
    for one, other in zip(found, given, strict=True):
        assert torch.allclose(one, other * step / size)


def test_a_clipped_step_moves_table_and_projections_no_further_than_the_rate_times_the_norm() -> None:
    model = WindowTable(form_of(clip=0.01, projection_rate=1.0, batch=100), torch.arange(1, WORDS + 1), [], WIDTH, CPU)
    before = [each.clone() for each in (model.table, *model.projections)]
    assert len([*model.train_block(a_shard(), generator=random(), lr_at=lambda _: 0.1)]) == 1
    moved = [new - old for new, old in zip((model.table, *model.projections), before, strict=True)]
    assert float(torch.cat([each.flatten() for each in moved]).norm()) == pytest.approx(0.1 * 0.01, rel=1e-3)


@pytest.mark.parametrize("around", [0.0, 0.5])
@pytest.mark.parametrize("own", [False, True])
def test_the_closed_start_is_the_mean_of_the_centres_around_a_word(around: float, own: bool) -> None:
    form = form_of(start="closed", context_weight=around, include_center=own)
    model = WindowTable(form, torch.arange(1, WORDS + 1), [a_shard(), a_shard()], WIDTH, CPU)
    arrays = {"mean": np.zeros(WIDTH), "first": model.projections[0].double().numpy()}
    arrays["second"] = arrays["first"]
    states, first = a_shard().states.double().numpy(), 0  # type: ignore[union-attr]
    met: dict[int, list[np.ndarray]] = {}
    for length in LENGTHS:
        here = states[first : first + length]
        for at, word in enumerate(TEXT[first : first + length]):
            near = [k for k in range(length) if abs(k - at) <= form.window and (own or k != at)] or [at]
            met.setdefault(word, []).extend(2 * [slow_centre(form, here, k, arrays) for k in near])
        first += length
    for word in range(WORDS):
        wanted = np.sum(met[word], axis=0) / (len(met[word]) + 8) if word in met else np.zeros(DIM)
        assert model.table[word, :DIM].tolist() == pytest.approx(wanted, abs=1e-5)


def test_states_are_whitened_into_the_directions_of_most_variance() -> None:
    shard = a_shard()._replace(states=torch.randn(len(TEXT), WIDTH, generator=random(5)) * torch.arange(1, 7) + 3)
    model = WindowTable(form_of(whiten=True, ridge=0.2), torch.ones(WORDS), [shard], WIDTH, CPU)
    states = shard.states.double().numpy()  # type: ignore[union-attr]
    values, axes = np.linalg.eigh(np.cov(states.T, bias=True))
    wanted = (states - states.mean(0)) @ axes[:, -DIM:] / np.sqrt(values[-DIM:] + 0.2 * values.mean())
    got = ((shard.states - model.mean) @ model.projections[0]).double().numpy()  # type: ignore[operator]
    assert np.abs(got @ got.T - wanted @ wanted.T).max() < 1e-3


def test_wangs_settings_are_the_papers() -> None:
    paper = settings_from(AttentiveSkipgram, {"settings": "wang-2020"})
    assert (paper.dim, paper.window, paper.negatives, paper.power) == (300, 5, 5, 0.75)
    assert (paper.optimizer, paper.rate, paper.clip, paper.decay) == ("sgd", 0.025, 5.0, "linear")
    assert (paper.min_length, paper.max_length, paper.subsample, paper.layer) == (10, 40, 0.0, "last")
    assert (paper.pool, paper.attention, paper.include_center, paper.shared_negatives) == ("attention", 1.0, False, 0)
    assert (paper.whiten, paper.bias, paper.start, paper.directions) == (False, False, "random", 0)
    assert paper.projection_rate > 0, "W is trained"
    form = paper
    assert (form.context_weight, form.norm_reward) == (0.0, 0.0)


def test_zhengs_settings_are_the_papers() -> None:
    paper = settings_from(ContextToVec, {"settings": "zheng-2022"})
    assert (paper.dim, paper.window, paper.negatives, paper.power) == (300, 5, 5, 0.75)
    assert (paper.pool, paper.context_weight, paper.norm_reward, paper.activation) == ("sum", 0.5, 1.0, "none")
    assert (paper.include_center, paper.shared_negatives, paper.subsample, paper.layer) == (False, 0, 0.0, "last")
    assert (paper.whiten, paper.bias, paper.start, paper.directions) == (False, False, "random", 0)
    assert paper.projection_rate > 0, "W1 and W2 are trained"
