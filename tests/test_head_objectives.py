"""Objectives and training options of heads against slow computations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stillvec.errors import TeacherError
from stillvec.heads import teacher_labels
from stillvec.heads.networks import NetworkSettings, PaddedTexts, TaggerNetworks, divide_tags
from stillvec.heads.objectives import OBJECTIVES, ArcFace, CenterLoss, Coco, Contrastive, CrossEntropy, Triplet
from stillvec.heads.sequence_batches import SPREAD, Sequences
from stillvec.heads.text_networks import CnnNetworks, LinearNetworks, Pass, TextTraining, divergence
from stillvec.heads.training_options import Adversarial, Experts
from stillvec.vectors import WordVectors
from stillvec.verbs.fitting import fit

CPU = torch.device("cpu")
LABELS = torch.tensor([[0, 1, 2, 0, 1]])
TARGETS = torch.eye(3, dtype=torch.float64)[LABELS]


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def loss_of(objective: Any, features: torch.Tensor, weights: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    scores = objective.score(features, weights, torch.zeros(1, 3, dtype=torch.float64))
    return objective.losses(features, scores, TARGETS, centres)


@pytest.mark.parametrize("name", [*OBJECTIVES])
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    objective = OBJECTIVES[name]()
    tensors = [draw(1, 5, 4).requires_grad_(), draw(1, 4, 3, seed=1).requires_grad_(), draw(1, 4, 3, seed=2)]
    assert torch.autograd.gradcheck(lambda *given: loss_of(objective, *given), tensors, atol=1e-5)


def test_arcface_without_a_margin_is_coco_and_center_without_a_weight_is_cross_entropy() -> None:
    given = draw(1, 5, 4), draw(1, 4, 3, seed=1), draw(1, 4, 3, seed=2)
    assert torch.equal(loss_of(ArcFace(margin=0), *given), loss_of(Coco(), *given))
    assert torch.equal(loss_of(CenterLoss(weight=0), *given), loss_of(CrossEntropy(), *given))
    assert bool((loss_of(ArcFace(margin=0.3), *given) > loss_of(Coco(), *given)).all())


def test_contrastive_and_triplet_are_means_over_pairs_and_triples() -> None:
    features = draw(1, 5, 4)
    x = features[0].numpy()
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines, labels = units @ units.T, LABELS[0].tolist()
    others = [[j for j in range(5) if j != i] for i in range(5)]
    pairs = []
    for i, near in enumerate(others):
        far = [max(cosines[i, j] - 0.75, 0) ** 2 for j in near if labels[i] != labels[j]]
        pairs.append(np.mean([*far, *((1 - cosines[i, j]) ** 2 for j in near if labels[i] == labels[j])]))
    triples = []
    for i, near in enumerate(others):
        own, far = ([j for j in near if (labels[i] == labels[j]) == same] for same in (True, False))
        terms = [1 / (1 + np.exp(-10 * (cosines[i, n] - cosines[i, p]))) for p in own for n in far]
        triples.append(np.mean(terms) if terms else 0.0)
    weights = draw(1, 4, 3, seed=1), draw(1, 4, 3, seed=2)
    np.testing.assert_allclose(loss_of(Contrastive(), features, *weights)[0].numpy(), pairs)
    np.testing.assert_allclose(loss_of(Triplet(), features, *weights)[0].numpy(), triples)


@pytest.mark.parametrize("name", [*OBJECTIVES])
def test_a_head_learns_by_every_objective(name: str) -> None:
    words = [f"w{number}" for number in range(30)]
    matrix = np.random.default_rng(0).standard_normal((30, 6)).astype(np.float32) + 2 * np.repeat(np.eye(3, 6), 10, 0)
    random = np.random.default_rng(1)
    rows = random.integers(0, 30, 150).tolist()
    data = [(f"w{row} w{row // 10 * 10 + random.integers(10)}", "abc"[row // 10]) for row in rows]
    head = fit(WordVectors(words, matrix), data, f"linear:hidden=8,objective={name},rate=0.02,epochs=30,patience=30")
    said = head.predict([text for text, _ in data])
    assert np.mean([ours == theirs for ours, (_, theirs) in zip(said, data, strict=True)]) > 0.75
    assert head.encode(["w1"]).shape == (1, 8)


def test_the_divergence_of_both_directions() -> None:
    p, q = (draw(1, 2, 3, seed=seed).log_softmax(dim=2) for seed in (3, 4))
    slow = [
        torch.stack([sum(a.exp() * (a - b) for a, b in zip(x, y, strict=True)) for x, y in zip(*pair, strict=True)])
        for pair in ((p[0], q[0]), (q[0], p[0]))
    ]
    torch.testing.assert_close(divergence(p, q)[0], slow[0])
    torch.testing.assert_close(divergence(p, q, student_first=False)[0], slow[1])
    torch.testing.assert_close(divergence(p, p), torch.zeros(1, 2, dtype=torch.float64))


def texts_of(n_texts: int = 40) -> Sequences:
    random = np.random.default_rng(0)
    table = random.standard_normal((20, 5)).astype(np.float32)
    table[:2] = 0
    return Sequences(table, random.integers(2, 20, 3 * n_texts), np.arange(3, 3 * n_texts + 1, 3))


def test_an_attack_on_a_linear_model_is_epsilon_times_the_sign_of_the_gradient_and_raises_the_loss() -> None:
    labels = np.random.default_rng(1).integers(0, 2, 40)
    option = Adversarial(epsilon=0.1)
    training = TextTraining(options={"adversarial": option})
    group = LinearNetworks(PaddedTexts([texts_of()], CPU), labels, [NetworkSettings(0, 0, 1e-2)], training=training)
    numbers = torch.arange(40)[None]
    ids, salts = group.read(numbers, 3), torch.zeros(2, 1, dtype=torch.int32)
    inputs = group.embed(ids)
    change = group._attack(ids, inputs, salts, 0.03, lambda made: group._compute_clean(made, numbers))
    weights = group.parameters[group.n_own][0].detach()  # (d, 2)
    wrong = torch.sign(weights[:, 1] - weights[:, 0])[None] * torch.where(torch.tensor(labels) == 0, 1, -1)[:, None]
    torch.testing.assert_close(change[0], 0.03 * wrong[:, None].expand(-1, 3, -1))
    clean, attacked = (group._compute_clean(group.forward(ids, salts, inputs + c), numbers) for c in (0, change))
    assert bool((attacked > clean).all())
    assert option.epsilon * SPREAD == pytest.approx(0.03)
    plain = LinearNetworks(PaddedTexts([texts_of()], CPU), labels, [NetworkSettings(0, 0, 1e-2)])
    whole = torch.stack([group.losses(numbers, 3, salts), plain.losses(numbers, 3, salts)])
    assert whole[0] > whole[1]


def test_every_pass_of_an_adversarial_step_drops_the_same_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clean pass, the inner step and the perturbed pass of both terms: with no perturbation, the same features."""
    labels = np.random.default_rng(1).integers(0, 2, 40)
    training = TextTraining(options={"adversarial": Adversarial(epsilon=1e-7)})
    group = CnnNetworks(PaddedTexts([texts_of()], CPU, 1), labels, [NetworkSettings(0, 0, 1e-2)], training=training)
    made: list[torch.Tensor] = []
    forward = group.forward

    def record(ids: torch.Tensor, salts: torch.Tensor | None = None, inputs: torch.Tensor | None = None) -> Pass:
        result = forward(ids, salts, inputs)
        made.append(result.features.detach())
        return result

    monkeypatch.setattr(group, "forward", record)
    numbers = torch.arange(40)[None]
    group.losses(numbers, 3, torch.tensor([[1], [2]], dtype=torch.int32))
    assert len(made) == 5
    for features in made[1:]:
        torch.testing.assert_close(features, made[0], atol=1e-4, rtol=0)
    others = forward(group.read(numbers, 3), torch.tensor([[3], [4]], dtype=torch.int32)).features
    assert float((others - made[0]).detach().abs().max()) > 0.01


def test_equal_experts_make_the_gate_irrelevant_and_a_gate_of_one_gives_that_expert() -> None:
    names = ("B-X", "B-Y", "I-X", "O")
    types, marks = divide_tags(names)
    assert types.tolist() == [1, 2, 1, 0]
    assert marks.tolist() == [0, 0, 1, 2]
    tags = np.random.default_rng(0).integers(0, 4, 120)
    options = {"experts": Experts(size=7)}
    texts, networks = PaddedTexts([texts_of()], CPU), [NetworkSettings(0, 0, 1e-3)]
    group = TaggerNetworks(texts, tags, networks, names=names, options=options)
    states = torch.randn(1, 2, 3, 200)
    gates = torch.rand(1, 2, 3, 3).softmax(dim=3), torch.eye(3)[torch.tensor([[[2, 0, 1], [1, 1, 2]]])]
    given = [group.mix_experts(states, gate) for gate in gates]
    experts, bias = (group.parameters[group.places[name]][0] for name in ("experts", "expert_bias"))
    torch.testing.assert_close(given[1][0, 0, 0], states[0, 0, 0] @ experts[2] + bias[2])
    for name in ("experts", "expert_bias"):
        part = group.parameters[group.places[name]]
        group.parameters[group.places[name]] = part[:, :1].expand_as(part)
    torch.testing.assert_close(*(group.mix_experts(states, gate) for gate in gates), atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", ["linear", "linear:hidden=20,rate=0.01,epochs=40,patience=10"])
def test_a_teachers_labels_of_texts_without_labels_teach_a_head(
    head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 labelled texts and 1,000 that only a teacher labels, of words whose label is a noisy direction."""
    random = np.random.default_rng(0)
    words, true = [f"w{number}" for number in range(400)], random.standard_normal(20)
    matrix = random.standard_normal((400, 20)).astype(np.float32)
    vectors = WordVectors(words, matrix)

    def write(n: int) -> list[str]:
        return [" ".join(f"w{row}" for row in random.integers(0, 400, 3)) for _ in range(n)]

    def label(texts: Any) -> np.ndarray[Any, Any]:
        likely = 1 / (1 + np.exp(-8 * vectors.encode([*texts]) @ true))
        return np.stack([1 - likely, likely], axis=1).astype(np.float32)

    def ask(option: Any, data: Any, texts: Any, device: str) -> Any:
        yield 1.0
        return label(texts)

    monkeypatch.setattr(teacher_labels, "label_texts", ask)
    labelled, tested = write(50), write(1000)
    data = [(text, "ab"[int(row[1] > 0.5)]) for text, row in zip(labelled, label(labelled), strict=True)]
    (tmp_path / "more.txt").write_text("\n".join(write(1000)) + "\n")
    gold = ["ab"[int(row[1] > 0.5)] for row in label(tested)]
    option = f"teacher:model=x,texts={tmp_path / 'more.txt'}"
    plain, taught = (fit(vectors, data, head, options).predict(tested) for options in ([], [option]))
    accuracy = [np.mean([ours == theirs for ours, theirs in zip(said, gold, strict=True)]) for said in (plain, taught)]
    assert accuracy[1] > accuracy[0] + 0.1
    assert accuracy[1] > 0.85


def test_a_teacher_whose_labels_are_not_finite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(name: str, data: Any, texts: Any, device: str) -> Any:
        yield 1.0
        return np.full((len(texts), 2), np.nan)

    monkeypatch.setattr(teacher_labels, "_ask_probe", ask)
    vectors = WordVectors(["ice", "fire"], np.eye(2, dtype=np.float32))
    with pytest.raises(TeacherError) as caught:
        fit(vectors, [("ice", "a"), ("fire", "b")] * 10, "linear", ["teacher:model=x"])
    assert caught.value.code == "not-finite"
