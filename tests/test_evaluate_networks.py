"""Networks that are trained together: each learns what it learns alone, on any device; an LSTM against torch's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from stillvec.heads import networks, text_networks
from stillvec.heads.crf import best_paths, negative_log_likelihood
from stillvec.heads.networks import NetworkSettings, PaddedTexts, TaggerNetworks, drop_units
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.text_networks import CnnNetworks

CPU = torch.device("cpu")
TEXT = torch.tensor([[0]])
ROWS, TESTED = np.arange(20, 110), np.arange(20)
NETWORKS = [NetworkSettings(*each) for each in ((0, 0, 1e-3), (1, 0, 3e-3), (1, 1, 1e-3), (0, 2, 3e-3))]


def sequences(dim: int, n_rows: int, seed: int) -> Sequences:
    """Texts of 1 to 11 words, at random."""
    lengths = np.random.default_rng(5).integers(1, 12, 120)
    generator = np.random.default_rng(seed)
    table = generator.standard_normal((n_rows, dim)).astype(np.float32)
    table[0] = 0
    return Sequences(table, generator.integers(1, n_rows, lengths.sum()), np.cumsum(lengths))


SETS = [sequences(6, 30, 1), sequences(9, 40, 2)]


def test_truncated_texts_begin_as_they_did() -> None:
    occurrences = replace(SETS[0], occurrence_types=SETS[0].ids + 100)
    short = occurrences.truncate(4)
    assert short.occurrence_types is not None
    whole = np.split(occurrences.ids, occurrences.ends[:-1])
    parts = np.split(short.ids, short.ends[:-1])
    assert [part.tolist() for part in parts] == [part[:4].tolist() for part in whole]
    assert np.array_equal(short.occurrence_types, short.ids + 100)
    assert short.ends[-1] == len(short.ids)


def labels(kind: type) -> Any:
    generator = np.random.default_rng(0)
    return generator.integers(0, 3, 120) if kind is CnnNetworks else generator.integers(0, 4, SETS[0].ends[-1])


def train(kind: Any, sets: list[Sequences], settings: list[NetworkSettings], tuned: bool, device: Any = CPU) -> Any:
    group = kind(PaddedTexts(sets, device, int(kind is CnnNetworks)), labels(kind), settings, tuned=tuned)
    for _ in group.train(ROWS, 3, 0.5):
        pass
    return group


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("kind", [CnnNetworks, TaggerNetworks])
def test_a_network_learns_beside_others_what_it_learns_alone(
    kind: Any, tuned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaggerNetworks, "max_norm", 0.5)  # so low that the gradient of each network is clipped
    together = train(kind, SETS, NETWORKS, tuned)
    said = together.predict(TESTED)
    for at, network in enumerate(NETWORKS):
        own = NetworkSettings(0, network.seed, network.rate)
        alone = train(kind, [SETS[network.vectors]], [own], tuned)
        for of_all, of_one in zip(together.parameters, alone.parameters, strict=True):
            part = of_all[at][tuple(map(slice, of_one.shape[1:]))]
            torch.testing.assert_close(part, of_one[0], atol=1e-5, rtol=0)
            assert of_all[at].count_nonzero() <= of_one[0].count_nonzero()  # padded dimensions have no weight
        torch.testing.assert_close(said[at], alone.predict(TESTED)[0])
    assert not torch.equal(together.parameters[0][1, :9], together.parameters[0][2, :9])


@pytest.mark.parametrize("kind", [CnnNetworks, TaggerNetworks])
def test_training_is_adam_on_the_mean_loss_of_texts_with_decay_and_clipping(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (networks, text_networks):
        monkeypatch.setattr(module, "drop_units", lambda x, salts: x)
    assert (CnnNetworks.max_norm, TaggerNetworks.max_norm) == (None, 5.0)
    monkeypatch.setattr(TaggerNetworks, "max_norm", 0.05)  # less than the gradients here
    settings = [NetworkSettings(0, 3, 0.02)]
    trained = train(kind, SETS[:1], settings, False)
    plain = kind(trained.texts, labels(kind), settings)
    parameters = plain.parameters = [part.detach().clone().requires_grad_() for part in plain.parameters]
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5 ** (1 / 2))
    order, salts = np.random.default_rng(3), torch.zeros(2, 1, dtype=torch.int32)
    for _ in range(3):
        for batch in SETS[0].batches(ROWS, kind.batch_size, order):
            optimizer.zero_grad()
            alone = [plain.losses(torch.tensor([[text]]), int(SETS[0].lengths[text]), salts) for text in batch]
            torch.cat(alone).mean().backward()  # type: ignore[no-untyped-call]
            if kind is TaggerNetworks:
                assert torch.nn.utils.clip_grad_norm_(parameters, 0.05) > 0.05
            optimizer.step()
        schedule.step()
    for part, expected in zip(trained.parameters, parameters, strict=True):
        torch.testing.assert_close(part, expected, atol=2e-5, rtol=0)


def test_the_tagger_drops_half_of_inputs_and_states_only_while_it_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []

    def drop(x: torch.Tensor, salts: torch.Tensor) -> torch.Tensor:
        seen.append((int(salts[0]), x.shape[-1]))
        return drop_units(x, salts)

    monkeypatch.setattr(networks, "drop_units", drop)
    group = TaggerNetworks(PaddedTexts(SETS[:1], CPU), labels(TaggerNetworks), NETWORKS[:1])
    next(group.train(ROWS, 1))
    assert [size for _, size in seen] == [6, 200] * 3  # three batches
    assert len({salt for salt, _ in seen}) == 6
    group.predict_words(TESTED)
    assert len(seen) == 6
    ids, inside = group.read(TEXT, 11), group._inside(TEXT, 11)
    assert not torch.equal(group.scores(ids, inside), group.scores(ids, inside, torch.ones(2, 1, dtype=torch.int32)))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [CnnNetworks, TaggerNetworks])
def test_a_gpu_learns_what_a_cpu_learns(kind: Any) -> None:
    here, there = (train(kind, SETS, NETWORKS, False, torch.device(device)) for device in ("cpu", "cuda"))
    torch.testing.assert_close(there.flat.cpu(), here.flat, atol=1e-3, rtol=0)


@pytest.mark.parametrize("tuned", [False, True])
def test_words_are_filtered_the_same_in_one_product_and_word_by_word(tuned: bool) -> None:
    group = CnnNetworks(PaddedTexts(SETS, CPU, 1), labels(CnnNetworks), NETWORKS, tuned=tuned)
    ids = group.read(torch.arange(40).view(4, 10), 11)
    ways = [group.filter_all, group.filter_unique]
    products = [way(ids, group.parameters[0]) for way in ways]
    torch.testing.assert_close(*products)
    weight = torch.randn(products[0].shape, generator=torch.Generator().manual_seed(0))
    gradients = [
        torch.autograd.grad((product * weight).sum(), group.flat, retain_graph=True)[0] for product in products
    ]
    torch.testing.assert_close(*gradients)


def test_the_lstm_is_that_of_torch_on_packed_sentences() -> None:
    group = TaggerNetworks(PaddedTexts(SETS[:1], CPU), labels(TaggerNetworks), NETWORKS[:1])
    enter, recur, biases = (parameter[0].detach() for parameter in group.parameters[:3])
    lstm = torch.nn.LSTM(6, 100, batch_first=True, bidirectional=True)

    def reorder(gates: torch.Tensor) -> torch.Tensor:
        """Input, forget, output, cell → input, forget, cell, output."""
        return gates.view(*gates.shape[:-1], 4, 100)[..., [0, 1, 3, 2], :].flatten(-2)

    with torch.no_grad():
        for direction, suffix in enumerate(("l0", "l0_reverse")):
            gates = slice(400 * direction, 400 * (direction + 1))
            getattr(lstm, f"weight_ih_{suffix}").copy_(reorder(enter[:, gates]).T)
            getattr(lstm, f"weight_hh_{suffix}").copy_(reorder(recur[direction]).T)
            for bias, name in zip(biases, ("ih", "hh"), strict=True):
                getattr(lstm, f"bias_{name}_{suffix}").copy_(reorder(bias[gates]))
    texts = torch.arange(12)[None]
    inside = torch.arange(11) < group.lengths[texts].unsqueeze(2)
    inputs = group.embed(group.read(texts, 11))
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        inputs[0], group.lengths[texts[0]], batch_first=True, enforce_sorted=False
    )
    states, _ = torch.nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=11)
    ours = networks.run_lstm(inputs, inside, *group.parameters[:3])[0]
    torch.testing.assert_close(ours[inside[0]], states[inside[0]])


def test_dropout_keeps_a_half_at_random_and_the_same_units_in_any_padding() -> None:
    salts = torch.tensor([3, -8], dtype=torch.int32)
    kept = drop_units(torch.ones(2, 40, 30, 50), salts) / 2
    assert {*kept.unique().tolist()} == {0.0, 1.0}
    assert kept.mean().item() == pytest.approx(0.5, abs=0.005)
    pairs = [
        kept[0] * kept[1],
        *(kept.narrow(d, 1, kept.shape[d] - 1) * kept.narrow(d, 0, kept.shape[d] - 1) for d in (1, 2, 3)),
    ]
    for both in pairs:
        assert both.mean().item() == pytest.approx(0.25, abs=0.01)
    torch.testing.assert_close(drop_units(torch.ones(1, 7, 30, 9), salts[1:]) / 2, kept[1:, :7, :, :9])


def test_fields_side_by_side_are_fields_alone() -> None:
    random = torch.Generator().manual_seed(0)
    scores, begin, step, end = (torch.randn(2, *shape, generator=random) for shape in ((5, 6, 3), (3,), (3, 3), (3,)))
    inside = torch.arange(6) < torch.tensor([[6, 1, 3, 2, 4], [2, 2, 6, 5, 1]]).unsqueeze(2)
    tags = torch.randint(0, 3, (2, 5, 6), generator=random)
    losses = negative_log_likelihood(scores, tags, inside, (begin, step, end))
    paths = best_paths(scores, inside, (begin, step, end))
    for at in range(2):
        steps = begin[at], step[at], end[at]
        torch.testing.assert_close(losses[at], negative_log_likelihood(scores[at], tags[at], inside[at], steps))
        assert torch.equal(paths[at], best_paths(scores[at], inside[at], steps))
