"""Objectives and training options of heads against slow computations."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stillvec.errors import CorpusError, TeacherError
from stillvec.heads import teacher_labels
from stillvec.heads.labelled_data import read_data
from stillvec.heads.networks import NetworkGroup, NetworkSettings, PaddedTexts, TaggerNetworks, divide_tags
from stillvec.heads.objectives import OBJECTIVES, ArcFace, CenterLoss, Coco, Contrastive, CrossEntropy, Triplet
from stillvec.heads.sequence_batches import SPREAD, Sequences
from stillvec.heads.teacher_labels import label_texts
from stillvec.heads.text_networks import (
    AttentionNetworks,
    CnnNetworks,
    LinearNetworks,
    Pass,
    TextTraining,
    divergence,
)
from stillvec.heads.training_options import (
    Adversarial,
    Auxiliary,
    ConcatOption,
    Experts,
    Masking,
    Residual,
    TeacherOption,
    TrainingOption,
    Tying,
)
from stillvec.progress import drain
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


class DotNetworks(AttentionNetworks):
    dot = True


SALTS = torch.tensor([[5, 6], [7, 8]], dtype=torch.int32)  # of two networks


def ragged_texts() -> Sequences:
    """Texts of 1 to 4 words, some of them unknown, whose vector is not zero."""
    random = np.random.default_rng(0)
    table = random.standard_normal((20, 5)).astype(np.float32)
    table[0] = 0
    lengths = random.integers(1, 5, 40)
    return Sequences(table, random.integers(1, 20, lengths.sum()), np.cumsum(lengths))


def use_double(group: NetworkGroup) -> None:
    """So that finite differences are exact enough."""
    group.tables, group.flat = group.tables.double(), group.flat.detach().double().requires_grad_()
    group.parameters = group._split()


def attend(form: type[AttentionNetworks] = AttentionNetworks, **options: TrainingOption) -> AttentionNetworks:
    labels, networks = np.random.default_rng(1).integers(0, 2, 40), [NetworkSettings(0, seed, 1e-2) for seed in (0, 1)]
    training = TextTraining(options=options)
    group = form(PaddedTexts([ragged_texts()], CPU), labels, networks, training=training)
    use_double(group)
    return group


def compare_slope(group: NetworkGroup, numbers: torch.Tensor, width: int) -> None:
    """The gradient of the loss along a random direction against a central difference."""
    (gradient,) = torch.autograd.grad(group.losses(numbers, width, SALTS).sum(), group.flat)
    start, way = group.flat.detach().clone(), draw(*group.flat.shape, seed=9)
    found = []
    for step in (1e-5, -1e-5):
        group.set_weights(start + step * way)
        found.append(float(group.losses(numbers, width, SALTS).detach().sum()))
    group.set_weights(start)
    assert float((gradient * way).sum()) == pytest.approx((found[0] - found[1]) / 2e-5, rel=1e-5)


def run_slowly(words: np.ndarray[Any, Any], parts: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The states of an LSTM in both directions, word by word, of one text (L, d) without padding."""
    enter, recur, biases = parts
    n_units, ways = recur.shape[1], []
    for way, rows in enumerate((words, words[::-1])):
        columns = slice(4 * n_units * way, 4 * n_units * (way + 1))
        state = cell = np.zeros(n_units)
        states = []
        for word in rows:
            given = word @ enter[:, columns] + state @ recur[way] + biases[:, columns].sum(axis=0)
            write, keep, show, update = given.reshape(4, n_units)
            cell = cell / (1 + np.exp(-keep)) + np.tanh(update) / (1 + np.exp(-write))
            state = np.tanh(cell) / (1 + np.exp(-show))
            states.append(state)
        ways.append(np.array(states[:: 1 - 2 * way]))
    return np.concatenate(ways, axis=1)


def read_slowly(
    group: AttentionNetworks, network: int, words: np.ndarray[Any, Any], *, residual: bool = False, concat: bool = False
) -> np.ndarray[Any, Any]:
    states = run_slowly(words, [part[network].detach().numpy() for part in group.parameters[:3]])
    if residual:
        states[:, : words.shape[1]] += words
    return np.hstack([states, words]) if concat else states


def rows_of(group: AttentionNetworks, numbers: torch.Tensor) -> list[np.ndarray[Any, Any]]:
    """The rows of the words of each text, without padding."""
    return [ids[ids != 0].numpy() for ids in group.read(numbers, 4)[0]]


@pytest.mark.parametrize("form", [AttentionNetworks, DotNetworks])
@pytest.mark.parametrize("names", [(), ("concat",), ("residual",), ("concat", "residual")])
def test_states_that_keep_their_words_are_those_of_a_loop(
    names: tuple[str, ...], form: type[AttentionNetworks]
) -> None:
    """States of 6 numbers, of words of 5: the last is not that of a word."""
    known: dict[str, TrainingOption] = {"concat": ConcatOption(), "residual": Residual()}
    group, numbers = attend(form, **{name: known[name] for name in names}), torch.arange(40).expand(2, -1)
    features, table = group.forward(group.read(numbers, 4)).features.detach().numpy(), group.tables[0].numpy()
    for network in range(2):
        query = [part[network].detach().numpy() for part in group.parameters[3 : group.n_own]]
        for rows, found in zip(rows_of(group, numbers), features[network], strict=True):
            states = read_slowly(group, network, table[rows], residual="residual" in names, concat="concat" in names)
            assert states.shape[1] == (11 if "concat" in names else 6)
            if form.dot:
                given = [float(state @ query[0]) / len(state) ** 0.5 for state in states]
            else:
                given = [float(np.tanh(state @ query[0] + query[1]) @ query[2]) for state in states]
            weights = np.exp(given) / np.exp(given).sum()
            np.testing.assert_allclose(found, sum(w * state for w, state in zip(weights, states, strict=True)))


def test_tying_adds_the_mean_squared_distance_of_a_state_from_its_word() -> None:
    numbers = torch.arange(30).expand(2, -1)
    plain, group = attend(), attend(tying=Tying(weight=0.7))
    added = (group.losses(numbers, 4, SALTS) - plain.losses(numbers, 4, SALTS)).detach().numpy()
    table = group.tables[0].numpy()
    for network in range(2):
        distances = []
        for rows in rows_of(group, numbers):
            for state, row in zip(read_slowly(group, network, table[rows]), rows, strict=True):
                distances.append(sum((state[column] - table[row, column]) ** 2 for column in range(5)))
        assert added[network] == pytest.approx(0.7 * np.mean(distances))
    compare_slope(group, numbers, 4)


def test_masking_adds_the_loss_of_finding_words_whose_vectors_are_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the rows of the batch, of which padding is one; an unknown word is not masked."""
    numbers = torch.arange(30).expand(2, -1)
    plain, group = attend(), attend(masking=Masking(weight=0.7, share=0.4))
    compare_slope(group, numbers, 4)
    read: list[torch.Tensor] = []
    read_states = group.read_states
    monkeypatch.setattr(group, "read_states", lambda words, inside: (read.append(words), read_states(words, inside))[1])
    added = (group.losses(numbers, 4, SALTS) - plain.losses(numbers, 4, SALTS)).detach().numpy()
    shown, changed = read
    ids, table = group.read(numbers, 4), group.tables[0].numpy()
    np.testing.assert_array_equal(shown.numpy(), table[ids])
    assert not torch.equal(changed[0], changed[1])  # each network masks words of its own
    for network in range(2):
        masked = (changed[network] == 0).all(dim=2).numpy() & (ids[network] != 0).numpy()
        np.testing.assert_array_equal(changed[network].numpy()[~masked], shown[network].numpy()[~masked])
        assert ids[network].numpy()[masked].min() > 1
        assert 0.25 < masked[ids[network] > 1].mean() < 0.55
        candidates = sorted({*ids[network].flatten().tolist()})
        losses = []
        for text, rows in enumerate(rows_of(group, numbers)):
            states = read_slowly(group, network, changed[network, text, : len(rows)].numpy())
            for place in np.flatnonzero(masked[text]):
                worth = {row: np.exp(states[place, :5] @ table[row]) for row in candidates}
                losses.append(-np.log(worth[rows[place]] / sum(worth.values())))
        assert added[network] == pytest.approx(0.7 * np.mean(losses))


def test_a_second_field_adds_the_loss_of_marks_without_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a sum over all sequences of marks, B, I and O, of each sentence."""
    monkeypatch.setattr("stillvec.heads.networks._UNITS", 6)
    names, texts, numbers = ("B-X", "B-Y", "I-X", "O"), ragged_texts(), torch.arange(30).expand(2, -1)
    tags = np.random.default_rng(0).integers(0, 4, len(texts.ids))
    networks = [NetworkSettings(0, seed, 1e-3) for seed in (0, 1)]
    plain, group = (
        TaggerNetworks(PaddedTexts([texts], CPU), tags, networks, names=names, options=options)
        for options in ({}, {"auxiliary": Auxiliary(weight=0.7)})
    )
    for each in (plain, group):
        use_double(each)
    added = (group.losses(numbers, 4, SALTS) - plain.losses(numbers, 4, SALTS)).detach().numpy()
    ids, starts = group.read(numbers, 4), texts.ends - texts.lengths
    states = group.read_states(ids, ids != 0, SALTS).detach().numpy()
    for network in range(2):
        weights, bias, begin, step, end = (part[network].detach().numpy() for part in group.parameters[-5:])
        losses = []
        for text in range(30):
            n_words = int(texts.lengths[text])
            given = states[network, text, :n_words] @ weights + bias
            worth = {
                path: begin[path[0]]
                + end[path[-1]]
                + sum(given[place, mark] for place, mark in enumerate(path))
                + sum(step[pair] for pair in itertools.pairwise(path))
                for path in itertools.product(range(3), repeat=n_words)
            }
            right = tuple("BIO".index(names[tag][0]) for tag in tags[starts[text] : texts.ends[text]])
            losses.append(np.log(sum(map(np.exp, worth.values()))) - worth[right])
        assert added[network] == pytest.approx(0.7 * np.mean(losses))
    compare_slope(group, numbers, 4)


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
    (tmp_path / "more.txt").write_text("\n\n")
    with pytest.raises(CorpusError, match="expected texts, one per line"):
        fit(vectors, data, head, [option])


def test_a_teacher_whose_labels_are_not_finite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(name: str, data: Any, texts: Any, device: str) -> Any:
        yield 1.0
        return np.full((len(texts), 2), np.nan)

    monkeypatch.setattr(teacher_labels, "_ask_probe", ask)
    vectors = WordVectors(["ice", "fire"], np.eye(2, dtype=np.float32))
    with pytest.raises(TeacherError) as caught:
        fit(vectors, [("ice", "a"), ("fire", "b")] * 10, "linear", ["teacher:model=x"])
    assert caught.value.code == "not-finite"


def test_a_classifier_is_not_asked_about_test_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask(folder: Path, data: Any, texts: Any, device: str, length: int) -> Any:
        asked.extend(texts)
        yield 1.0
        return np.tile(np.float32([0.3, 0.7]), (len(texts), 1))

    monkeypatch.setattr(teacher_labels, "_ask_classifier", ask)
    (tmp_path / "config.json").write_text('{"architectures": ["XForSequenceClassification"]}')
    for part, numbers in (("train", range(40)), ("test", range(40, 50))):
        (tmp_path / f"x.{part}.txt").write_text("\n".join(f"{'ab'[number % 2]} text {number}" for number in numbers))
    data = read_data(tmp_path / "x", "text")
    option = TeacherOption(model=str(tmp_path))
    likely = drain(label_texts(option, data, [*data.items, "another"], "cpu"))
    assert asked == [*data.items[:40], "another"]
    learnt = np.concatenate([data.train, data.dev, [50]])
    assert likely[learnt].tolist() == np.tile(np.float32([0.3, 0.7]), (41, 1)).tolist()
    assert not likely[data.test].any()
