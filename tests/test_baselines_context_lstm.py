"""ContextLSTM against a loop over places, autograd and torch's Adam."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny_corpus import counted, sentences

from stillvec.baselines import EncodedCorpus, Resources, encode_corpus
from stillvec.baselines.context_lstm import ContextLstm, LstmBatch, LstmJob, LstmModel
from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.progress import drain as drained
from stillvec.training.checkpoint import open_checkpoint
from stillvec.training.optimizers import RowAdam
from stillvec.training.schedule import TrainingProgress

SENTENCES = [[0, 3, 1, 4], [2, 2], [4, 0, 1, 3, 2]]


@pytest.fixture
def text(tmp_path: Path) -> EncodedCorpus:
    made = sentences(96)
    folder = tmp_path / "text"
    folder.mkdir()
    return drained(encode_corpus(Corpus.from_texts(made), counted(made), folder))


@pytest.fixture
def model() -> LstmModel:
    made = LstmModel(
        ContextLstm(dim=3, input_dim=4, hidden_dim=5, negatives=4, subsample=0.0), np.array([5, 4, 3, 2, 1])
    )
    choose = np.random.default_rng(0)
    made.targets.table = torch.from_numpy(choose.normal(size=(5, 3)).astype(np.float32))
    return made


def batch_of(model: LstmModel, words: list[list[int]]) -> LstmBatch:
    rows = np.array([9, *chain(*words), 9], np.int32)  # what lies around is of other sentences
    lengths = np.array([len(each) for each in words])
    return model.batch(rows, 1 + np.cumsum(lengths) - lengths, lengths, np.random.default_rng(0))


def state(model: LstmModel, side: str, words: list[int], table: torch.Tensor, weights: dict[str, torch.Tensor]) -> Any:
    """The last state of an LSTM, gate by gate."""
    hidden = memory = torch.zeros(5, dtype=torch.float64)
    for word in words:
        gates = weights[f"{side}.weight_ih_l0"] @ table[word] + weights[f"{side}.bias_ih_l0"]
        gates = gates + weights[f"{side}.weight_hh_l0"] @ hidden + weights[f"{side}.bias_hh_l0"]
        enter, forget, new, leave = gates.split(5)
        memory = forget.sigmoid() * memory + enter.sigmoid() * new.tanh()
        hidden = leave.sigmoid() * memory.tanh()
    return hidden


def slow_contexts(
    model: LstmModel, words: list[list[int]], table: torch.Tensor, weights: dict[str, torch.Tensor]
) -> torch.Tensor:
    """Each gap by itself: all to its left is read anew, and all to its right."""
    found = []
    for sentence in words:
        for place in range(len(sentence)):
            before = state(model, "left", [model.begin, *sentence[:place]], table, weights)
            after = state(model, "right", [model.end, *reversed(sentence[place + 1 :])], table, weights)
            inner = weights["inner.weight"] @ torch.cat([before, after]) + weights["inner.bias"]
            found.append(weights["outer.weight"] @ inner.relu() + weights["outer.bias"])
    return torch.stack(found)


def leaves(model: LstmModel) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
    weights = {name: each.table.double().requires_grad_() for name, each in model.weights.items()}
    return model.words.table.double().requires_grad_(), model.targets.table.double().requires_grad_(), weights


def test_all_gaps_at_once_are_each_gap_read_by_itself(model: LstmModel) -> None:
    batch = batch_of(model, SENTENCES)
    table, _, weights = leaves(model)
    assert batch.targets.tolist() == [*chain(*SENTENCES)]
    assert batch.n_words == 11
    wanted = slow_contexts(model, SENTENCES, table, weights)
    assert torch.allclose(model.contexts(batch)[0].double(), wanted, atol=1e-6)


def test_a_gap_is_filled_by_what_stands_around_it_and_not_by_its_own_word(model: LstmModel) -> None:
    one, other = (model.contexts(batch_of(model, [[0, word, 1]]))[0] for word in (3, 4))
    assert torch.equal(one[1], other[1])
    assert not torch.allclose(one[0], other[0])
    assert not torch.allclose(one[2], other[2])


def test_the_gradient_is_that_of_the_objective_written_out(model: LstmModel, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [1, 4, 1]
    table, outer, weights = leaves(model)
    found = slow_contexts(model, SENTENCES, table, weights)
    right = (found * outer[[*chain(*SENTENCES)]]).sum(1)
    wanted = F.softplus(-right).sum() + 4 / 3 * F.softplus(found @ outer[drawn].T).sum()
    wanted.backward()
    steps: dict[int, tuple[torch.Tensor, Any]] = {}
    monkeypatch.setattr(RowAdam, "update", lambda self, rows, slope, lr: steps.update({id(self): (slope, rows)}))
    assert model.step(batch_of(model, SENTENCES), torch.tensor(drawn), 0.1) == pytest.approx(wanted.item(), rel=1e-5)
    named = [(model.words, table), (model.targets, outer)]
    for adam, leaf in [*named, *((model.weights[name], weights[name]) for name in weights)]:
        slope, rows = steps.pop(id(adam))
        assert leaf.grad is not None
        whole = torch.zeros_like(leaf)
        whole[rows] = slope.double()
        assert torch.allclose(whole, leaf.grad, atol=1e-5)
    assert not steps


def test_adam_is_torchs_and_a_row_counts_its_own_steps() -> None:
    choose = np.random.default_rng(1)
    slopes = torch.from_numpy(choose.normal(size=(6, 3, 2)).astype(np.float32))
    start = torch.from_numpy(choose.normal(size=(3, 2)).astype(np.float32))
    whole, some = (RowAdam(start.clone(), per_row=True) for _ in range(2))
    wanted, alone = start.clone().requires_grad_(), start[1:2].clone().requires_grad_()
    by_torch, of_one = torch.optim.Adam([wanted], lr=0.1), torch.optim.Adam([alone], lr=0.1)
    for number, slope in enumerate(slopes):
        wanted.grad = slope
        by_torch.step()
        whole.update(torch.arange(3), slope, 0.1)
        rows = torch.tensor([0, 1] if number % 2 else [2])
        some.update(rows, slope[rows], 0.1)
        if number % 2:
            alone.grad = slope[1:2]
            of_one.step()
    assert torch.allclose(whole.table, wanted, atol=1e-5)
    assert torch.allclose(some.table[1:2], alone, atol=1e-5)


def test_every_sentence_is_read_once_in_a_batch_of_its_length() -> None:
    choose = np.random.default_rng(0)
    lengths = choose.integers(2, 60, size=300)
    rows = choose.integers(20, size=lengths.sum()).astype(np.int32)
    model = LstmModel(ContextLstm(dim=2, batch=200, subsample=0.0), np.bincount(rows))
    batches = [*model.batches(rows, np.cumsum(lengths), choose)]
    assert sum(batch.n_words for batch in batches) == len(rows)
    targets = torch.cat([batch.targets for batch in batches]).numpy()
    assert np.array_equal(np.bincount(targets), np.bincount(rows))
    assert max(batch.n_words for batch in batches) < 200 + 60
    assert sum(batch.forward.numel() for batch in batches) < 1.2 * len(rows)
    widths = [batch.forward.shape[1] for batch in batches]
    assert widths != sorted(widths)


def test_frequent_targets_are_left_out_and_read_all_the_same(text: EncodedCorpus) -> None:
    model = LstmModel(ContextLstm(dim=2, subsample=1e-3), text.vocabulary.counts)
    [(rows, ends)] = text.blocks(10**6)
    batches = [*model.batches(rows, ends, np.random.default_rng(0))]
    n_targets = sum(len(batch.targets) for batch in batches)
    assert 0 < n_targets < 0.5 * text.n_words
    none = batches[0]._replace(targets=torch.zeros(0, dtype=torch.int64))
    assert model.train_job(LstmJob(none, torch.tensor([1]), 0.1)) == (0, 0.0, none.n_words)


def test_the_loss_falls(text: EncodedCorpus) -> None:
    events: list[TrainingProgress] = []
    drained(ContextLstm(dim=8, epochs=12, batch=100, subsample=0.0, rate=0.02).steps(text, Resources(1)), events.append)
    losses = [float(step.remark.removeprefix("loss ")) for step in events if step.done % text.n_words == 0]
    assert len(losses) == 12
    assert losses[-1] < 0.7 * losses[0]


def test_what_was_stopped_within_an_epoch_continues_from_there(
    text: EncodedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stillvec.training.checkpoint._EVERY", 0.0)
    monkeypatch.setattr("stillvec.baselines.context_lstm._BLOCK_WORDS", 150)
    method = ContextLstm(dim=4, epochs=2, batch=50)
    whole = drained(method.steps(text, Resources(1)))
    steps = method.steps(text, Resources(1, open_checkpoint(tmp_path, {}, resume=False)))
    while next(steps).done < 400:
        pass
    steps.close()
    events: list[TrainingProgress] = []
    rest = drained(method.steps(text, Resources(1, open_checkpoint(tmp_path, {}, resume=True))), events.append)
    assert 150 < events[0].done <= 400 < text.n_words
    assert rest.vectors.matrix.tobytes() == whole.vectors.matrix.tobytes()


@pytest.mark.parametrize("setting", ["input_dim", "hidden_dim", "batch", "shared_negatives"])
def test_a_size_of_nothing_is_refused(setting: str) -> None:
    with pytest.raises(UsageError, match=setting):
        ContextLstm(**{setting: 0})
