"""Several sentences in a row: each has the states it has alone, rows are full, nothing is lost."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_teachers import FAMILIES, TEXT, tiny_teacher

from stillvec.encoding import Batch, BatchBudget, BatchBuilder, TextChunk, encode_batch
from stillvec.encoding.batch import pack_rows
from stillvec.teachers import Teacher
from stillvec.teachers.mpnet import FusedAttention, use_fused_attention
from stillvec.teachers.sequence_packing import detect_packing
from stillvec.vocabulary import Vocabulary, WordMatcher

WORDS = " ".join(TEXT).split()
VOCABULARY = Vocabulary([*dict.fromkeys(WORDS)])
TEXTS = [" ".join(WORDS[start : start + length]) for start, length in enumerate([3, 1, 7, 2, 9, 30, 1, 5, 8, 4])]
LONG = " ".join(WORDS * 8)


@cache
def _teacher(family: str) -> Teacher:
    plain = tiny_teacher(family=family, window=160)
    return dataclasses.replace(plain, packing=detect_packing(plain.model, plain.tokenizer, plain.pad, plain.device))


def _batches(teacher: Teacher, texts: list[str], budget: int) -> list[Batch]:
    preparation = BatchBuilder.for_teacher(teacher, WordMatcher(VOCABULARY), BatchBudget(budget, 64))
    return preparation(TextChunk(texts))


def _sums(teacher: Teacher, texts: list[str], budget: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of all layers, what each word and each sentence has, words added up by row."""
    layers = range(teacher.depth + 1)
    words = torch.zeros(len(layers), len(VOCABULARY), teacher.dim)
    sentences = []
    for batch in _batches(teacher, texts, budget):
        encoded = encode_batch(teacher, batch, layers)
        for layer in layers:
            words[layer].index_add_(0, encoded.known_id, encoded.words(layer)[encoded.known])
        sentences.append(encoded.sentences(teacher.depth))
    return words, torch.cat(sentences).sum(0)


@pytest.mark.parametrize("family", FAMILIES)
def test_other_sentences_of_a_packed_row_change_no_sentence(family: str) -> None:
    teacher = _teacher(family)
    padded = dataclasses.replace(teacher, packing=None)
    texts = [*TEXTS, "", LONG, LONG + " " + LONG]
    for got, want in zip(_sums(teacher, texts, 512), _sums(padded, texts, 512), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "gpt2", "llama"])
def test_these_families_are_packed(family: str) -> None:
    teacher = _teacher(family)
    assert teacher.packing is not None
    assert teacher.packing.causal == (family in ("gpt2", "llama"))
    batch, *_ = _batches(teacher, TEXTS, 4096)
    assert len(batch.tokens_per_sentence) > len(batch.ids)
    assert batch.position_ids.shape == batch.ids.shape


def test_a_model_that_sees_its_neighbours_is_not_packed(caplog: pytest.LogCaptureFixture) -> None:
    teacher = _teacher("bert")

    class Deaf(torch.nn.Module):
        """Takes the mask, and does not heed it."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = teacher.model

        def forward(self, input_ids: torch.Tensor, **_: object) -> object:
            return self.inner(input_ids=input_ids)

    assert detect_packing(Deaf(), teacher.tokenizer, teacher.pad, teacher.device) is None
    assert "padded" in caplog.text  # why the run is slower


@settings(deadline=None, max_examples=200)
@given(lengths=st.lists(st.integers(1, 40), max_size=60))
def test_rows_hold_what_was_packed_and_nothing_twice(lengths: list[int]) -> None:
    row, column = pack_rows(np.array(lengths, np.int64), 40)
    taken = [(r, c + k) for r, c, n in zip(row.tolist(), column.tolist(), lengths, strict=True) for k in range(n)]
    assert len({*taken}) == sum(lengths)
    assert all(0 <= place < 40 for _, place in taken)
    assert {*row.tolist()} == {*range(len({*row.tolist()}))}


def test_packed_rows_are_nearly_full() -> None:
    lengths = np.clip(np.random.default_rng(0).lognormal(3.1, 0.6, 8000).astype(np.int64), 3, 128)
    row, _ = pack_rows(lengths, 128)
    assert lengths.sum() / (128 * (row.max() + 1)) > 0.98


def test_fused_attention_gives_the_states_of_the_original() -> None:
    teacher = tiny_teacher(family="mpnet")
    assert not use_fused_attention(tiny_teacher(family="bert").model)
    ids = torch.randint(5, 40, (3, 20))
    mask = torch.ones_like(ids)
    mask[1, 12:] = 0
    before = teacher.states(ids, mask, [0, 1, 2])
    labels = [*teacher.model.state_dict()]
    assert use_fused_attention(teacher.model)
    assert [*teacher.model.state_dict()] == labels
    after = teacher.states(ids, mask, [0, 1, 2])
    for layer in before:
        torch.testing.assert_close(after[layer], before[layer], rtol=1e-5, atol=1e-5)
    attentions = teacher.model(input_ids=ids, attention_mask=mask, output_attentions=True).attentions
    assert all(torch.allclose(weights.sum(-1), torch.ones(1)) for weights in attentions)


def test_fused_attention_that_changes_the_states_is_undone_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    teacher = tiny_teacher(family="mpnet")
    kinds = [type(module) for module in teacher.model.modules()]
    monkeypatch.setattr(FusedAttention, "forward", lambda self, hidden_states, *_, **__: (hidden_states,))
    assert not use_fused_attention(teacher.model)
    assert [type(module) for module in teacher.model.modules()] == kinds
    assert "states differ" in caplog.text
    monkeypatch.setattr(FusedAttention, "forward", lambda self, *_, **__: 1 / 0)
    assert not use_fused_attention(teacher.model)
    assert [type(module) for module in teacher.model.modules()] == kinds
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(("gigabytes", "depth", "dim", "pieces"), [(139, 12, 768, 262_144), (16, 12, 768, 43_018)])
def test_a_gpu_gets_batches_that_fit_its_memory(
    gigabytes: int, depth: int, dim: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = type("Properties", (), {"total_memory": gigabytes << 30})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    large = dataclasses.replace(_teacher("bert"), device=torch.device("cuda"), depth=depth, dim=dim)
    load = BatchBudget.for_teacher(large)
    assert load.n_tokens == pieces
    assert 6 * (depth + 1) * dim * load.n_tokens < 0.16 * properties.total_memory
    wider = BatchBudget.for_teacher(dataclasses.replace(large, depth=8 * depth, dim=8 * dim))
    assert 4096 <= wider.n_tokens < load.n_tokens
