"""Tuning of teachers: what is learnt, heads that are kept, second tasks, adversarial steps, datasets."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_adaptation import make_teacher
from transformers import BertConfig

import stillvec
from stillvec.adaptation import model_training, tuning
from stillvec.adaptation.language_models import load_model
from stillvec.adaptation.model_training import ModelTrainer, train_model
from stillvec.adaptation.tuning import Tuning, _judge, _Learner, choose_rate, diverge, move_words
from stillvec.adaptation.tuning_data import encode_items, read_dataset
from stillvec.errors import DatasetError, TrainingError, UsageError
from stillvec.heads.head_kind import THRESHOLDS
from stillvec.progress import Progress, drain
from stillvec.teachers import load_teacher, precision_choice
from stillvec.training import checkpoint

GOOD, BAD = ("good", "sun", "sea", "book"), ("old", "price", "dollars", "dog")
FAST = "epochs=8,batch=8,length=16,rate=3e-3"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Datasets of every kind, each of which one word decides."""
    random = np.random.default_rng(0)
    lines: dict[str, list[str]] = {"classification/a.train.txt": [], "classification/a.test.txt": [], "pairs/b.tsv": []}
    lines |= {"tagging/c.tsv": [], "roles/d.jsonl": [], "multilabel/e.txt": []}
    for number in range(96):
        good = bool(random.integers(2))
        word, other = str(random.choice(GOOD if good else BAD)), str(random.choice(BAD))
        part = "train" if number < 64 else "test"
        lines[f"classification/a.{part}.txt"].append(f"{'yes' if good else 'no'} the {word} and the house")
        lines["pairs/b.tsv"].append(f"{'entailment' if good else 'neutral'}\tthe house\tthe {word}\tkind")
        tag = "B-NICE" if good else "O"
        lines["tagging/c.tsv"].append(f"the\tO\n{word}\t{tag}\nhouse\tO\n")
        roles = [[0, "know.01", [[1, 1, "ARG0" if good else "ARG1"]]]]
        lines["roles/d.jsonl"].append(json.dumps({"words": ["know", word, "house"], "predicates": roles}))
        labels = ",".join(["all", "nice"] if good else ["all"])
        lines["multilabel/e.txt"].append(f"{labels} the {word} and {other}")
    for name, content in lines.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(content) + "\n", "utf-8")
    return tmp_path / "data"


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    return make_teacher(tmp_path / "teacher")


def tune(teacher: Path, out: Path, settings: str) -> dict[str, Any]:
    stillvec.adapt(teacher, f"tune:{settings},{FAST}", out=out, device="cpu")
    return dict(json.loads((out / "adaptation.json").read_bytes())["adapted"][-1]["facts"])


@pytest.mark.parametrize(
    ("dataset", "kind"),
    [
        ("classification/a", "Sequence"),
        ("pairs/b.tsv", "Sequence"),
        ("tagging/c.tsv", "Token"),
        ("multilabel/e.txt", "Sequence"),
    ],
)
def test_a_teacher_learns_what_one_word_decides(
    dataset: str, kind: str, teacher: Path, data: Path, tmp_path: Path
) -> None:
    facts = tune(teacher, tmp_path / "out", f"on={data / dataset}")
    config = json.loads((tmp_path / "out/config.json").read_bytes())
    assert facts["dev"] > 0.8
    assert config["architectures"] == [f"BertFor{kind}Classification"]
    assert sorted(config["id2label"].values()) == read_dataset(str(data / dataset), "auto").names
    assert load_teacher(str(tmp_path / "out")).digest != load_teacher(str(teacher)).digest


def test_the_saved_classifier_says_what_was_measured(teacher: Path, data: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    facts = tune(teacher, tmp_path / "out", f"on={data}/classification/a")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    tokenizer, right = AutoTokenizer.from_pretrained(tmp_path / "out"), []
    for line in (data / "classification/a.test.txt").read_text("utf-8").splitlines():
        label, _, text = line.partition(" ")
        with torch.no_grad():
            said = int(model(**tokenizer(text, return_tensors="pt")).logits.argmax())
        right.append(model.config.id2label[said] == label)
    assert facts["test"] == pytest.approx(np.mean(right))
    assert facts["test"] > 0.65


@pytest.mark.parametrize("family", ["mpnet", "gpt2"])
def test_other_families_are_tuned(family: str, data: Path, tmp_path: Path) -> None:
    facts = tune(make_teacher(tmp_path / "teacher", family), tmp_path / "out", f"on={data}/classification/a")
    assert facts["dev"] > 0.6
    load_teacher(str(tmp_path / "out"))


def test_bf16_rounds_products_and_keeps_weights_in_fp32(teacher: Path, data: Path, tmp_path: Path) -> None:
    made = {name: tmp_path / name for name in ("fp32", "bf16", "auto")}
    for name, out in made.items():
        facts = tune(teacher, out, f"on={data}/classification/a,precision={name}")
        assert facts["dev"] > 0.8
        assert facts["precision"] == ("bf16" if name == "bf16" else "fp32"), "narrow matrices gain nothing"
    weights = {name: load_file(out / "model.safetensors") for name, out in made.items()}
    assert {value.dtype for value in weights["bf16"].values()} == {torch.float32}
    largest = {name: float((value - weights["fp32"][name]).abs().max()) for name, value in weights["bf16"].items()}
    assert 1e-5 < max(largest.values()) < 0.1
    assert all(torch.equal(value, weights["auto"][name]) for name, value in weights["fp32"].items())


@pytest.mark.parametrize(
    ("width", "computes", "chosen"), [(256, True, "bf16"), (256, False, "fp32"), (255, True, "fp32")]
)
def test_auto_is_bf16_where_the_cpu_computes_in_it_and_the_model_is_wide(
    width: int, computes: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision_choice, "computes_bf16", lambda: computes)
    model: Any = torch.nn.Linear(2, 2)
    model.config = BertConfig(hidden_size=width, num_attention_heads=1)
    assert model_training.choose_precision("auto", model) == chosen
    assert model_training.choose_precision("fp32", model) == "fp32"


def test_a_second_task_is_learnt_too(
    teacher: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: set[int] = set()

    def train(*given: Any, task_of: Callable[[int], int], **settings: Any) -> Any:
        tasks.update(map(task_of, range(given[0].n_steps)))
        return train_model(*given, task_of=task_of, **settings)

    monkeypatch.setattr(tuning, "train_model", train)
    facts = tune(teacher, tmp_path / "out", f"on={data}/classification/a,auxiliary={data}/roles/d.jsonl")
    assert tasks == {0, 1}
    assert facts["dev"] > 0.8
    assert facts["auxiliary"] > 0.6
    assert not [name for name in load_file(tmp_path / "out/model.safetensors") if "second" in name]
    monkeypatch.undo()
    alone = tune(teacher, tmp_path / "alone", f"on={data}/classification/a")
    assert facts["steps"] > alone["steps"]


def test_without_adversary_the_bytes_are_those_of_plain_tuning(teacher: Path, data: Path, tmp_path: Path) -> None:
    for name, extra in {"plain": "", "zero": ",adversarial=0,virtual=3", "some": ",adversarial=0.5"}.items():
        tune(teacher, tmp_path / name, f"on={data}/classification/a{extra}")
    plain, zero, some = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("plain", "zero", "some"))
    assert plain == zero
    assert plain != some


def test_a_perturbation_of_a_linear_model_raises_its_loss_within_its_limit() -> None:
    random = torch.Generator().manual_seed(0)
    weights, words = torch.randn(5, generator=random), torch.randn(40, 3, 5, generator=random)

    def lose(moved: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(-((words + moved) @ weights).sum(1))

    moved = torch.zeros_like(words, requires_grad=True)
    (slope,) = torch.autograd.grad(lose(moved).sum(), moved)
    shift = move_words(torch.zeros_like(words), slope, 0.1)
    assert float(shift.abs().max()) <= 0.1 + 1e-8
    assert float((lose(shift) > lose(torch.zeros_like(words))).float().mean()) == 1
    top = slope.abs() == slope.abs().amax(dim=(1, 2), keepdim=True)
    assert torch.allclose(shift[top], 0.1 * slope[top].sign())


def test_the_divergence_is_symmetric_and_zero_for_the_same() -> None:
    one, other = torch.randn(4, 3, generator=torch.Generator().manual_seed(1)), torch.zeros(4, 3)
    p, q = one.softmax(-1), other.softmax(-1)
    expected = ((p * (p / q).log()).sum(-1) + (q * (q / p).log()).sum(-1)).mean()
    assert float(diverge(one, other)) == pytest.approx(float(expected), rel=1e-5)
    assert float(diverge(one, other)) == pytest.approx(float(diverge(other, one)), rel=1e-5)
    assert float(diverge(one, one)) == 0


def test_the_divergence_of_several_labels_is_that_of_each() -> None:
    one, other = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    p, q = (torch.stack([x.sigmoid(), (-x).sigmoid()], -1) for x in (one, other))
    expected = ((p - q) * (p.log() - q.log())).sum((1, 2)).mean()
    torch.testing.assert_close(diverge(one, other, several=True), expected)


def test_several_labels_begin_at_their_shares_and_have_the_best_threshold(
    teacher: Path, data: Path, tmp_path: Path
) -> None:
    items = read_dataset(str(data / "multilabel/e.txt"), "auto")
    learner = _Learner(Tuning(on="x"), teacher, items, None, torch.device("cpu"))
    learner.model.classifier.weight.data.zero_()
    share = np.mean(["nice" in item.labels for item in items.train])
    assert learner.predict(items.train[:1])[0][1] == pytest.approx(share, abs=1e-5)
    logits, targets = torch.randn(4, 2), torch.ones(4, 2)
    whole = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
    torch.testing.assert_close(learner._lose(logits, targets), 2 * whole)
    said = [np.array(row) for row in ([0.9, 0.3], [0.9, 0.1])] * (len(items.dev) // 2 + 1)
    threshold, score = _judge(items, said[: len(items.dev)])
    scores = [items.score(items.dev, said[: len(items.dev)], each) for each in THRESHOLDS.tolist()]
    assert score == max(scores) == items.score(items.dev, said[: len(items.dev)], threshold)
    facts = tune(teacher, tmp_path / "out", f"on={data / 'multilabel/e.txt'},adversarial=0.1")
    assert 0 < facts["threshold"] < 1


def test_a_perturbed_text_has_the_dropout_of_the_clean_one(teacher: Path, data: Path) -> None:
    """So that the divergence is that of the perturbation alone."""
    items = read_dataset(str(data / "classification/a"), "auto")
    learner = _Learner(Tuning(on="", adversarial=1e-9), teacher, items, None, torch.device("cpu"))
    learner.whole.train()
    state = torch.get_rng_state()
    batch = encode_items(learner.tokenizer, items.train[:8], items.kind, 16)
    targets = items.targets(items.train[:8], batch.words, 16)
    clean = learner.model(**batch.inputs).logits.detach()
    others = learner.model(**batch.inputs).logits.detach()
    torch.set_rng_state(state)
    moved = learner._perturb(batch.inputs, targets, clean).detach()
    assert float((clean - others).abs().max()) > 1e-4
    assert float((clean - moved).abs().max()) < 1e-5


@pytest.mark.parametrize("divides", [False, True])
def test_the_inner_step_of_the_adversary_has_the_dropout_of_the_clean_text(
    divides: bool, teacher: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The direction of a perturbation is the gradient of the network whose units are dropped, not of another."""
    items = read_dataset(str(data / "classification/a"), "auto")
    learner = _Learner(Tuning(on="", adversarial=0.5), teacher, items, None, torch.device("cpu"))
    learner.whole.train()
    batch = encode_items(learner.tokenizer, items.train[:8], items.kind, 16)
    targets = items.targets(items.train[:8], batch.words, 16)
    rest = {name: value for name, value in batch.inputs.items() if name != "input_ids"}
    words = learner.model.get_input_embeddings()(batch.inputs["input_ids"]).detach()
    steps: list[tuple[torch.Tensor, torch.Tensor]] = []
    monkeypatch.setattr(tuning, "move_words", lambda moved, slope, _: steps.append((moved, slope)) or moved)
    state = torch.get_rng_state()
    clean = learner.model(**batch.inputs).logits.detach() if divides else None
    torch.set_rng_state(state)
    learner._perturb(batch.inputs, targets, clean)
    (moved, slope) = steps.pop()

    def differentiate(state: torch.Tensor) -> torch.Tensor:
        torch.set_rng_state(state)
        inputs = (words + moved).requires_grad_()
        logits = learner.model(inputs_embeds=inputs, **rest).logits
        said, other = logits.log_softmax(1), None if clean is None else clean.log_softmax(1)
        worse = (
            -said.gather(1, targets[:, None]).mean()
            if other is None
            else ((said.exp() - other.exp()) * (said - other)).sum(1).mean()
        )
        return torch.autograd.grad(worse, inputs)[0]

    same, others = differentiate(state), differentiate(torch.get_rng_state())
    torch.testing.assert_close(slope, same, rtol=1e-3, atol=1e-7)
    assert float((slope - others).norm()) > 0.1 * float(others.norm())


@pytest.mark.parametrize("setting", ["label=0", "virtual=0", "label=3"])
def test_both_terms_of_the_adversary_change_what_is_learnt(
    setting: str, teacher: Path, data: Path, tmp_path: Path
) -> None:
    for name, extra in {"both": "", "one": f",{setting}"}.items():
        tune(teacher, tmp_path / name, f"on={data}/classification/a,adversarial=0.5{extra},most=32")
    both, one = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("both", "one"))
    assert both != one


def test_a_task_with_larger_losses_is_not_taken_for_divergence(teacher: Path) -> None:
    """The second task begins with ten times the loss of the first, and stays there."""
    model = load_model(teacher, "ModelForSequenceClassification", num_labels=2).model
    settings = Tuning(on="", rate=1e-9)
    tasks = [0] + [1] * 45

    def train(losses: Sequence[float]) -> int:
        trainer = ModelTrainer(torch.nn.ModuleDict({"model": model}), settings, 1e-9, len(tasks))
        weights = next(iter(trainer.parameters.values()))

        def lose(step: int, _: np.random.Generator) -> torch.Tensor:
            return 0 * weights.sum() + losses[step]

        return drain(train_model(trainer, lose, None, task_of=lambda step: tasks[step]))

    assert train([0.5] + [5.0] * 45) == 46
    with pytest.raises(TrainingError, match="the loss went from 5 to"):
        train([0.5] + [5.0] * 25 + [30.0] * 20)


def test_narrow_teachers_learn_faster_by_default() -> None:
    assert choose_rate(768) == pytest.approx(3e-5)
    assert choose_rate(384) == pytest.approx(1.2e-4)
    assert choose_rate(32) == choose_rate(64) == pytest.approx(3e-4)


def test_pruned_weights_stay_zero_and_deleted_ones_do_not(teacher: Path, data: Path, tmp_path: Path) -> None:
    name = "bert.encoder.layer.1.output.dense.weight"
    for zeros, share in (("keep", 0.5), ("free", 0.0)):
        steps = (f"prune:sparsity=0.5,zeros={zeros}", f"tune:on={data}/classification/a,{FAST}")
        out = stillvec.adapt(teacher, *steps, out=tmp_path / zeros, device="cpu")
        assert float((load_file(out / "model.safetensors")[name] == 0).float().mean()) == share
    out = stillvec.adapt(
        teacher, f"tune:on={data}/classification/a,{FAST},sparsity=0.3", out=tmp_path / "g", device="cpu"
    )
    assert float((load_file(out / "model.safetensors")[name] == 0).float().mean()) == pytest.approx(0.3, abs=0.01)
    assert name in json.loads((out / "adaptation.json").read_bytes())["pruned"]


def test_an_interrupted_tuning_is_resumed_to_the_same_bytes(
    teacher: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = f"tune:on={data}/classification/a,auxiliary={data}/roles/d.jsonl,{FAST},adversarial=0.1"
    monkeypatch.setattr(checkpoint, "_EVERY", 0.0)
    monkeypatch.setattr(model_training, "_CHECK_EVERY", 1)
    whole = stillvec.adapt(teacher, step, out=tmp_path / "whole", device="cpu")

    def interrupt(event: Progress) -> None:
        if event.stage == "training" and event.done == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stillvec.adapt(teacher, step, out=tmp_path / "part", device="cpu", progress=interrupt)
    part = stillvec.adapt(teacher, step, out=tmp_path / "part", device="cpu", resume=True)
    assert (part / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_further_files_are_tested_and_labels_without_counterpart_are_one(
    teacher: Path, data: Path, tmp_path: Path
) -> None:
    challenge = tmp_path / "challenge.tsv"
    rows = [f"entailment\tthe house\tthe {word}\tnear" for word in GOOD]
    rows += [f"non-entailment\tthe house\tthe {word}\tfar" for word in BAD]
    challenge.write_text("\n".join(rows), "utf-8")
    facts = tune(teacher, tmp_path / "out", f"on={data}/pairs/b.tsv,test={challenge}")
    assert facts["challenge"]["accuracy"] > 0.7
    assert {*facts["challenge"]} == {"accuracy", "near", "far"}


def test_a_further_file_that_cannot_be_read_is_refused_before_training(
    teacher: Path, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "noise.tsv").write_bytes(np.random.default_rng(0).bytes(3000))
    seen: list[Progress] = []
    step = f"tune:on={data}/pairs/b.tsv,test={tmp_path / 'noise.tsv'},{FAST}"
    with pytest.raises(DatasetError, match="binary data"):
        stillvec.adapt(teacher, step, out=tmp_path / "out", device="cpu", progress=seen.append)
    assert "training" not in {event.stage for event in seen}


def test_words_are_found_among_tokens_and_those_that_are_cut_are_not(teacher: Path, data: Path) -> None:
    from transformers import AutoTokenizer

    items = read_dataset(str(data / "roles/d.jsonl"), "auto").train[:1]
    tokenizer = AutoTokenizer.from_pretrained(teacher)
    batch = encode_items(tokenizer, items, "roles", 16)
    tokens = tokenizer.convert_ids_to_tokens(batch.inputs["input_ids"][0])
    assert [tokens[place] for place in batch.words[0]] == [items[0].texts[0], items[0].texts[1], "house"]
    assert [tokens[place] for place in np.flatnonzero(batch.marked[0].numpy())] == ["know"]
    assert encode_items(tokenizer, items, "roles", 3).words[0].tolist()[1:] == [-1, -1]


@pytest.mark.parametrize("wrong", ["patience=0", "adversarial=-1", "batch=0", "task=roles"])
def test_wrong_settings_are_refused(wrong: str, teacher: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        stillvec.adapt(teacher, f"tune:on={data}/classification/a,{wrong}", out=tmp_path / "out")


def test_wrong_datasets_are_one_sentence(teacher: Path, data: Path, tmp_path: Path) -> None:
    (data / "texts").mkdir()
    (data / "texts/x.txt").write_text("yes a\nno b\n" * 20, "utf-8")
    (data / "classification/one.txt").write_text("yes a\n" * 20, "utf-8")
    wrong: dict[str, type[Exception]] = {
        "classification/none": DatasetError, "classification": DatasetError, "classification/one.txt": DatasetError,
        "texts/x.txt": UsageError, "roles/d.jsonl": UsageError,
    }  # fmt: skip
    for name, error in wrong.items():
        with pytest.raises(error):
            stillvec.adapt(teacher, f"tune:on={data / name}", out=tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()
