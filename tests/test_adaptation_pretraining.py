"""Language models on text: masks, held-out loss, new models, resumed training, zeros that stay, gradual pruning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from test_adaptation import TEXTS, make_teacher, write_text

import stillvec
from stillvec.adaptation import model_training
from stillvec.adaptation.attribute_model import AttributeModel, find_attributes, read_lexicon
from stillvec.adaptation.model_training import keep_largest, scale_rate
from stillvec.adaptation.token_stream import cut_rows, mask_tokens, train_tokenizer
from stillvec.errors import CorpusError, TrainingError, UsageError
from stillvec.progress import Progress
from stillvec.teachers import load_teacher
from stillvec.training import checkpoint

SMALL = "epochs=1,length=16,batch=8,rate=1e-3"
NEW = "length=16,batch=8,layers=1,dim=16,heads=2,vocabulary=120"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "text.txt")


def facts(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "adaptation.json").read_bytes())["adapted"][-1]["facts"])


@pytest.mark.parametrize("family", ["bert", "mpnet", "roberta", "gpt2", "llama"])
def test_the_loss_on_held_out_text_falls(family: str, text: Path, tmp_path: Path) -> None:
    teacher = make_teacher(tmp_path / "teacher", family)
    out = stillvec.adapt(teacher, f"pretrain:text={text},{SMALL}", out=tmp_path / "out", device="cpu")
    assert facts(out)["loss after"] < facts(out)["loss before"] - 0.1
    assert facts(out)["objective"] == ("causal" if family in ("gpt2", "llama") else "masked")
    assert (out / "tokenizer.json").read_bytes() == (teacher / "tokenizer.json").read_bytes()


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_a_new_model_is_made_of_text_alone(objective: str, text: Path, tmp_path: Path) -> None:
    step = f"pretrain:text={text},objective={objective},epochs=6,rate=3e-3,{NEW}"
    out = stillvec.adapt("new", step, out=tmp_path / "out", device="cpu")
    assert facts(out)["loss after"] < facts(out)["loss before"] - 0.5
    teacher = load_teacher(str(out))
    assert (teacher.dim, teacher.depth) == (16, 1)
    assert "house" in teacher.tokenizer.vocabulary()
    vectors = stillvec.distill(TEXTS, teacher=str(out), method="aggregate", min_count=1)
    assert np.isfinite(vectors.matrix).all()


def test_a_new_model_can_have_whole_words(text: Path, tmp_path: Path) -> None:
    out = stillvec.adapt(
        "new", f"pretrain:text={text},units=words,max_steps=1,{NEW}", out=tmp_path / "out", device="cpu"
    )
    assert {*load_teacher(str(out)).tokenizer.vocabulary()} >= {"house", "sleeps"}


def test_words_of_chinese_are_those_between_spaces() -> None:
    lines = ["今天 天气 很 好", "天气 很 好"]
    words, pieces = (
        train_tokenizer(lines, 64, units, lowercase=True).tokenize("今天 天气") for units in ("words", "pieces")
    )
    assert words == ["[UNK]", "天气"]  # a word of the tokenizer occurs twice
    assert pieces[-2:] == ["天", "气"]


def test_only_pretrain_makes_a_new_teacher(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pretrain"):
        stillvec.adapt("new", "prune", out=tmp_path / "out")


def test_an_interrupted_training_is_resumed_to_the_same_bytes(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teacher, step = make_teacher(tmp_path / "teacher"), f"pretrain:text={text},{SMALL},sparsity=0.4"
    monkeypatch.setattr(checkpoint, "_EVERY", 0.0)
    monkeypatch.setattr(model_training, "_CHECK_EVERY", 1)
    whole = stillvec.adapt(teacher, step, out=tmp_path / "whole", device="cpu")

    def interrupt(event: Progress) -> None:
        if event.stage == "training" and event.done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="--resume"):
        stillvec.adapt(teacher, step, out=tmp_path / "part", device="cpu", progress=interrupt)
    assert not (tmp_path / "part").exists()
    done: list[int] = []
    part = stillvec.adapt(
        teacher, step, out=tmp_path / "part", device="cpu", resume=True, progress=lambda event: done.append(event.done)
    )
    assert min(filter(None, done)) >= 8
    assert (part / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert not (tmp_path / "part.checkpoint").exists()


def test_zeros_stay_zero_unless_they_are_free(text: Path, tmp_path: Path) -> None:
    teacher = make_teacher(tmp_path / "teacher")
    name = "bert.encoder.layer.0.attention.self.key.weight"
    for zeros, share in (("keep", 0.5), ("free", 0.0)):
        steps = (f"prune:sparsity=0.5,zeros={zeros}", f"pretrain:text={text},{SMALL}")
        out = stillvec.adapt(teacher, *steps, out=tmp_path / zeros, device="cpu")
        weights = load_file(out / "model.safetensors")[name]
        assert float((weights == 0).float().mean()) == share
        before = load_file(teacher / "model.safetensors")[name.removeprefix("bert.")]
        assert not torch.equal(weights[weights != 0], before[weights != 0])  # the others were trained
    apart = stillvec.adapt(teacher, "prune:sparsity=0.5", out=tmp_path / "one")
    stillvec.adapt(apart, f"pretrain:text={text},{SMALL}", out=tmp_path / "two", device="cpu")
    assert (tmp_path / "two/model.safetensors").read_bytes() == (tmp_path / "keep/model.safetensors").read_bytes()


def test_gradual_pruning_reaches_its_sparsity_and_keeps_it(text: Path, tmp_path: Path) -> None:
    teacher = make_teacher(tmp_path / "teacher")
    out = stillvec.adapt(teacher, f"pretrain:text={text},{SMALL},sparsity=0.4", out=tmp_path / "out", device="cpu")
    weights = load_file(out / "model.safetensors")
    pruned = json.loads((out / "adaptation.json").read_bytes())["pruned"]
    assert "bert.embeddings.word_embeddings.weight" in pruned
    for name in pruned:
        assert float((weights[name] == 0).float().mean()) == pytest.approx(0.4, abs=0.02), name
    again = stillvec.adapt(out, f"pretrain:text={text},{SMALL},seed=1", out=tmp_path / "again", device="cpu")
    for name, tensor in load_file(again / "model.safetensors").items():
        assert name not in pruned or bool((tensor[weights[name] == 0] == 0).all())


def test_the_mask_of_the_largest_is_that_of_sorting() -> None:
    weights = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 30)))
    order = weights.abs().flatten().argsort()
    expected = torch.ones(600, dtype=torch.bool)
    expected[order[:240]] = False
    assert torch.equal(keep_largest(weights, 0.4).flatten(), expected)
    assert bool(keep_largest(weights, 0).all())


def test_the_learning_rate_rises_and_falls() -> None:
    rates = [scale_rate(progress / 100) for progress in range(100)]
    assert max(rates) == pytest.approx(1, abs=0.02)
    assert rates[0] < 0.02
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_a_share_of_the_tokens_is_masked_and_special_tokens_never() -> None:
    rows = np.random.default_rng(0).integers(5, 100, size=(200, 40)).astype(np.int32)
    rows[:, 0] = 1
    special = np.arange(100) < 5
    ids, chosen = mask_tokens(rows, special, 4, 0.15, np.random.default_rng(1))
    assert (chosen.sum(1) == 6).all()
    assert not chosen[:, 0].any()
    assert (ids[~chosen] == rows[~chosen]).all()
    masked, same = (ids[chosen] == 4).mean(), (ids[chosen] == rows[chosen]).mean()
    assert masked == pytest.approx(0.8, abs=0.03)
    assert same == pytest.approx(0.1, abs=0.03)
    assert not np.isin(ids[chosen & (ids != 4)], np.flatnonzero(special)).any()


def test_rare_tokens_are_masked_more_often() -> None:
    rows = np.where(np.random.default_rng(0).random((500, 40)) < 0.9, 5, 6).astype(np.int32)
    weights = np.ones(7)
    weights[5], weights[6] = 90**-0.5, 10**-0.5  # counts^-0.5: three times as likely
    _, chosen = mask_tokens(rows, np.arange(7) < 5, 4, 0.1, np.random.default_rng(1), weights)
    odds = chosen[rows == 6].mean() / chosen[rows == 5].mean()
    assert odds == pytest.approx(3, rel=0.15)


def test_rows_are_the_stream_between_special_tokens() -> None:
    rows = cut_rows(np.arange(10, 30, dtype=np.int32), 6, [1], [2])
    assert rows.tolist() == [[1, *range(start, start + 4), 2] for start in range(10, 30, 4)]
    with pytest.raises(CorpusError):
        cut_rows(np.arange(7, dtype=np.int32), 6, [1], [2])


def test_another_text_is_another_request(text: Path, tmp_path: Path) -> None:
    teacher = make_teacher(tmp_path / "teacher")
    stillvec.adapt(teacher, f"pretrain:text={text},max_steps=1,length=16", out=tmp_path / "out", device="cpu")
    text.write_text("\n".join(TEXTS * 61), "utf-8")
    with pytest.raises(UsageError) as caught:
        stillvec.adapt(teacher, f"pretrain:text={text},max_steps=1,length=16", out=tmp_path / "out", device="cpu")
    assert caught.value.code == "exists"


def test_training_that_diverges_is_one_sentence(text: Path, tmp_path: Path) -> None:
    teacher = make_teacher(tmp_path / "teacher")
    with pytest.raises(TrainingError) as caught:
        stillvec.adapt(teacher, f"pretrain:text={text},length=16,batch=4,rate=1000", out=tmp_path / "out", device="cpu")
    assert caught.value.code == "diverged"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["teacher", "text.txt"]


@pytest.mark.parametrize("wrong", ["mask=1", "dim=10,heads=4", "epochs=0", "rate=-1", "sparsity=1", "objective=next"])
def test_wrong_settings_are_refused(wrong: str, text: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        stillvec.adapt("new", f"pretrain:text={text},{wrong}", out=tmp_path / "out")


def test_a_causal_teacher_cannot_predict_masks(text: Path, tmp_path: Path) -> None:
    teacher = make_teacher(tmp_path / "teacher", "gpt2")
    with pytest.raises(UsageError, match="mask"):
        stillvec.adapt(teacher, f"pretrain:text={text},{SMALL},objective=masked", out=tmp_path / "out", device="cpu")


@pytest.fixture
def lexicon(tmp_path: Path) -> Path:
    words = sorted({word for line in TEXTS for word in line.split()})
    path = tmp_path / "lexicon.tsv"
    path.write_text("".join(f"{word}\tall {'odd' if n % 2 else 'even'}\n" for n, word in enumerate(words)), "utf-8")
    return path


def test_attributes_are_added_as_the_mean_of_their_vectors(lexicon: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    lm = GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=8, n_layer=1, n_head=2)).eval()
    words = [line.partition("\t")[0] for line in lexicon.read_text("utf-8").splitlines()]
    table = find_attributes(read_lexicon(str(lexicon)), {word: row for row, word in enumerate(words)})
    assert table.shape == (len(words), 1)  # "odd" and "even" have fewer than ten words
    model = AttributeModel(lm, np.eye(40, 3, dtype=np.float32) + np.eye(40, 3, 1, dtype=np.float32), "both", 0)
    added = model.mean_vectors()
    assert torch.allclose(added[1], model.vectors[[1, 2]].mean(0), atol=1e-6)
    assert torch.equal(added[5], torch.zeros(8))  # a word without attributes stays
    ids = torch.tensor([[0, 1, 5, 2]])
    logits, states = model.read(ids)
    expected = F.binary_cross_entropy(torch.sigmoid(model.detector(states)), model.has[ids])
    assert torch.allclose(model.predict_attributes(states, ids), expected, rtol=1e-5)
    folded = model.fold()
    assert torch.allclose(folded(input_ids=ids).logits, logits, atol=1e-5)


@pytest.mark.parametrize("use", ["input", "output", "both"])
def test_a_model_with_attributes_is_an_ordinary_teacher(use: str, text: Path, lexicon: Path, tmp_path: Path) -> None:
    step = f"pretrain:text={text},objective=causal,max_steps=4,{NEW},attributes={lexicon},attributes_in={use}"
    out = stillvec.adapt("new", step, out=tmp_path / "out", device="cpu")
    plain = step.partition(",attributes=")[0]
    stillvec.adapt("new", plain, out=tmp_path / "plain", device="cpu")
    assert load_teacher(str(out)).digest != load_teacher(str(tmp_path / "plain")).digest
    assert load_teacher(str(out)).dim == 16


def test_attributes_need_a_new_left_to_right_model(text: Path, lexicon: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="causal"):
        stillvec.adapt("new", f"pretrain:text={text},{NEW},attributes={lexicon}", out=tmp_path / "out", device="cpu")
