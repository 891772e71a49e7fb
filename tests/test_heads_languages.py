"""Taggers of several sets of vectors, by attention, and of several languages, which an adversary tells apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stillvec import WordVectors, combine, fit, load_head
from stillvec.errors import DatasetError, UsageError
from stillvec.heads.linear_probe import tell_groups
from stillvec.heads.lookup import Lookup
from stillvec.heads.networks import NetworkSettings, PaddedTexts, TaggerNetworks
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.source_attention import join_sources
from stillvec.heads.tagger_head import Tagger
from stillvec.heads.training_options import Invariant

WORDS = [f"w{number}" for number in range(60)]
LABEL = np.random.default_rng(1).integers(0, 3, len(WORDS))


def draw_set(dim: int, *, informative: bool, seed: int, words: Sequence[str] = WORDS) -> WordVectors:
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(len(words), dim))
    if informative:
        numbers = [WORDS.index(word) for word in words]
        matrix = 0.1 * matrix + np.eye(3)[LABEL[numbers]] @ random.normal(size=(3, dim))
    return WordVectors(words, matrix.astype(np.float32))


def draw_sentences(n: int, seed: int = 0, words: range = range(60)) -> list[tuple[list[str], list[str]]]:
    random = np.random.default_rng(seed)
    rows = random.choice([*words], size=(n, 5))
    return [([WORDS[at] for at in row], [f"T{LABEL[at]}" for at in row]) for row in rows]


def weigh_slowly(arrays: dict[str, Any], row: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """The input of the LSTM for one word, by loops."""
    widths, start, states, scores = arrays["widths"].tolist(), 0, [], []
    for number, width in enumerate(widths):
        part = row[start : start + width].astype(np.float64)
        state = [
            np.tanh(
                sum(part[i] * arrays["project"][start + i, j] for i in range(width)) + arrays["project_bias"][number, j]
            )
            for j in range(max(widths))
        ]
        hidden = np.tanh(np.array(state) @ arrays["attend"])
        scores.append(float(hidden @ arrays["attend_value"]) if part.any() else -np.inf)
        states.append(np.array(state))
        start += width
    weights = [float(np.exp(score) / sum(map(np.exp, scores))) for score in scores]
    return np.sum([weight * state for weight, state in zip(weights, states, strict=True)], axis=0), weights


def test_attention_over_sources_is_what_its_formula_says() -> None:
    sets = [draw_set(4, informative=True, seed=0), draw_set(6, informative=False, seed=1, words=WORDS[10:])]
    head = fit(sets, draw_sentences(40), "tagger:epochs=1", packing="none")
    assert isinstance(head.kind, Tagger)
    rows = np.asarray(head.vectors.matrix)[[head.vectors.vocabulary.index[word] for word in ("w3", "w30")]]
    mapped, weights = head.kind.map_words(head.arrays, rows), head.kind.weigh_sources(head.arrays, rows)
    for at, row in enumerate(rows):
        expected = weigh_slowly(head.arrays, row * head.arrays["factor"])
        np.testing.assert_allclose(mapped[at], expected[0], atol=1e-5)
        np.testing.assert_allclose(weights[at], expected[1], atol=1e-5)
    assert weights[0].tolist() == [1, 0]  # the second set lacks it
    (why,) = head.explain([["w3", "w30"]])
    assert [name for name, _ in why.experts] == ["vectors-1", "vectors-2"]
    assert why.experts[1][1][0] == 0


def test_numpy_and_torch_give_the_same_tags_of_several_sources() -> None:
    sets = [draw_set(4, informative=True, seed=0), draw_set(6, informative=False, seed=1)]
    sentences = [words for words, _ in draw_sentences(12)]
    vectors = join_sources(sets)
    sequences = Lookup(vectors).read_tokens(sentences)
    tags = np.array([LABEL[WORDS.index(word)] for words in sentences for word in words])
    texts = PaddedTexts([sequences], torch.device("cpu"))
    group = TaggerNetworks(texts, tags, [NetworkSettings(0, 0, 3e-3)], names=("T0", "T1", "T2"), widths=(4, 6))
    with torch.no_grad():
        read = group.read_words(torch.from_numpy(sequences.ids).view(1, 1, -1))[0, 0].numpy()
    arrays = {name: group.parameters[place][0].detach().numpy() for name, place in group.places.items()}
    arrays |= {"widths": np.array([4, 6]), "factor": np.float32(sequences.scale_factor).reshape(1)}
    np.testing.assert_allclose(Tagger().map_words(arrays, sequences.table[sequences.ids]), read, atol=1e-5)


def test_the_source_that_knows_the_tags_gets_the_weight() -> None:
    sets = [draw_set(dim, informative=dim == 20, seed=dim + at) for at, dim in enumerate((20, 50, 50, 100))]
    head = fit(sets, draw_sentences(300), "tagger:epochs=8,rate=0.01", packing="none")
    assert isinstance(head.kind, Tagger)
    weights = head.kind.weigh_sources(head.arrays, np.asarray(head.vectors.matrix))
    assert weights[:, 0].mean() >= 0.7
    assert head.manifest["scores"]["dev"]["accuracy"] >= 0.95


def test_only_a_tagger_reads_several_sets() -> None:
    sets = [draw_set(4, informative=True, seed=0)] * 2
    with pytest.raises(UsageError) as caught:
        fit(sets, [("w1", "a"), ("w2", "b")] * 10, "linear")
    assert "tagger" in str(caught.value)


def test_several_datasets_are_learnt_together(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        for part, n in (("train", 20), ("test", 5)):
            sentences = draw_sentences(n, seed)
            lines = ["".join(f"{w}\t{t}\n" for w, t in zip(*sentence, strict=True)) for sentence in sentences]
            (tmp_path / f"{name}.{part}.tsv").write_text("\n".join(lines))
    head = fit(
        draw_set(4, informative=True, seed=0),
        [tmp_path / "a", tmp_path / "b"],
        "tagger:epochs=1",
        ["invariant"],
        out=tmp_path / "head",
    )
    assert head.manifest["data"]["train"] + head.manifest["data"]["dev"] == 40
    assert head.manifest["data"]["test"] == 10
    assert load_head(tmp_path / "head").predict([["w1", "w2"]]) == head.predict([["w1", "w2"]])


def test_a_weight_of_zero_gives_the_bytes_of_the_plain_tagger(tmp_path: Path) -> None:
    other = tmp_path / "de.txt"
    other.write_text("w1 w2, w3\nw4\n")
    vectors, data = draw_set(4, informative=True, seed=0), draw_sentences(20)
    plain = fit(vectors, data, "tagger:epochs=1")
    zero = fit(vectors, data, "tagger:epochs=1", [f"invariant:texts={other},weight=0"])
    on = fit(vectors, data, "tagger:epochs=1", [f"invariant:texts={other},weight=0.1"])
    assert plain.arrays.keys() == zero.arrays.keys()
    assert all(np.array_equal(plain.arrays[name], zero.arrays[name]) for name in plain.arrays)
    assert on.arrays["map"].any()


def test_invariant_needs_a_second_language(tmp_path: Path) -> None:
    vectors, data = draw_set(4, informative=True, seed=0), draw_sentences(20)
    with pytest.raises(UsageError) as caught:
        fit(vectors, data, "tagger", ["invariant"])
    assert "texts=" in str(caught.value)
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(DatasetError):
        fit(vectors, data, "tagger", [f"invariant:texts={tmp_path / 'empty.txt'}"])


def make_group(weight: float) -> TaggerNetworks:
    random = np.random.default_rng(0)
    table = random.normal(size=(12, 4)).astype(np.float32)
    sequences = Sequences(table, np.arange(2, 12), np.array([5, 10]))
    return TaggerNetworks(
        PaddedTexts([sequences], torch.device("cpu")), np.zeros(10, np.int64), [NetworkSettings(0, 0, 3e-3)],
        names=("A", "B"), options={"invariant": Invariant(weight, n_words=3)}, languages=np.array([0, 1]),
    )  # fmt: skip


def test_the_gradient_of_the_language_is_reversed_before_the_map() -> None:
    group = make_group(0.5)
    salts = torch.tensor([7], dtype=torch.int32)
    place = group.places["map"]
    group.flat.data += 0.1 * torch.randn(group.flat.shape, generator=torch.Generator().manual_seed(0))
    group.parameters = group._split()
    loss = group.tell_languages(salts).sum()
    through = torch.autograd.grad(loss, [group.parameters[place], group.parameters[group.judge_place]])
    # the same loss without the reversal, from the definitions
    from stillvec.heads.networks import draw_numbers

    rows = torch.stack([pool[draw_numbers(salts + n, 3, len(pool))] for n, pool in enumerate(group.pools)], dim=1)
    assert set(rows[0, 0].tolist()) <= {2, 3, 4, 5, 6}
    map_, first, bias, second, last = (group.parameters[place], *group.parameters[group.judge_place :][:4])
    x = group.tables[0][rows[0]]
    hidden = (torch.tanh(x + x @ map_[0]) @ first[0] + bias[0]).relu()
    logs = (hidden @ second[0] + last[0]).log_softmax(dim=2)
    plain = -(logs[0, :, 0].mean() + logs[1, :, 1].mean()) / 2
    expected = torch.autograd.grad(plain, [map_, first])
    assert float(loss.detach()) == pytest.approx(float(plain.detach()), abs=1e-5)
    torch.testing.assert_close(through[0], -0.5 * expected[0])
    torch.testing.assert_close(through[1], expected[1])


def test_a_probe_tells_groups_only_if_they_differ() -> None:
    random = np.random.default_rng(0)
    same = [random.normal(size=(200, 5)) for _ in range(3)]
    assert tell_groups(same) < 0.45
    assert tell_groups([part + 3 * number for number, part in enumerate(same)]) > 0.95


def test_combine_sums_sets_by_the_attention_of_a_tagger(tmp_path: Path) -> None:
    sets = [draw_set(6, informative=False, seed=1), draw_set(4, informative=True, seed=0, words=WORDS[10:])]
    lines = ["".join(f"{w}\t{t}\n" for w, t in zip(*pair, strict=True)) for pair in draw_sentences(120)]
    (tmp_path / "data.tsv").write_text("\n".join(lines))
    both = combine(sets, f"attention:on={tmp_path / 'data.tsv'},epochs=3", out=tmp_path / "both")
    assert both.words == WORDS or set(both.words) == set(WORDS)
    assert both.dim == 6
    head = fit(sets, tmp_path / "data.tsv", "tagger:epochs=3", packing="none")
    assert isinstance(head.kind, Tagger)
    expected = head.kind.map_words(head.arrays, np.asarray(head.vectors.matrix))
    np.testing.assert_allclose(both.matrix, expected, atol=1e-5)
    assert "attention" in (tmp_path / "both/README.md").read_text()


def speak(shift: float, turn: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Words of a language: four classes in a shared space, turned and moved."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(4, 10)) * 1.2
    axis = np.linalg.qr(np.eye(10) + turn * random.normal(size=(10, 10)))[0]
    axis = axis * np.sign(np.diag(axis))
    label = random.integers(0, 4, n)
    move = random.normal(size=10)
    return (centres[label] + 0.5 * random.normal(size=(n, 10))) @ axis + shift * move / np.linalg.norm(move), label


@pytest.mark.slow
def test_invariant_and_centring_help_a_language_without_labels(capsys: pytest.CaptureFixture[str]) -> None:
    """Three languages, labels in two: as they are, with the option, and centred, the simple rival."""
    spoken = [speak(6.0, 0.05, 800, seed) for seed in (1, 2, 3)]
    found: dict[str, tuple[float, float, float]] = {}
    for name, weight, centred in (("plain", 0.0, False), ("invariant", 0.3, False), ("centred", 0.0, True)):
        parts = [x - centred * x.mean(axis=0) for x, _ in spoken]
        table = np.concatenate([np.zeros((2, 10)), *parts]).astype(np.float32)
        sequences = Sequences(table, np.arange(2, len(table)), np.arange(5, len(table), 5))
        labels = np.concatenate([label for _, label in spoken])
        languages = np.repeat([0, 1, 2], 160)
        options = {"invariant": Invariant(weight)} if weight else {}
        group = TaggerNetworks(
            PaddedTexts([sequences], torch.device("cpu")), labels, [NetworkSettings(0, s, 1e-2) for s in range(3)],
            names=("A", "B", "C", "D"), options=options, languages=languages,
        )  # fmt: skip
        train = np.flatnonzero(languages < 2)[::2]
        for _ in group.train(train, 60, 1 / 3):
            pass
        held = np.setdiff1d(np.arange(320), train), np.arange(320, 480)
        seen, other = (
            float((group.predict_words(rows) == labels.reshape(-1, 5)[rows].ravel()).mean()) for rows in held
        )
        with torch.no_grad():
            read = group.read_words(torch.arange(2, len(table)).expand(3, 1, -1))[0, 0].numpy()
        found[name] = seen, other, tell_groups([*read.reshape(3, -1, 10)])
    with capsys.disabled():
        for name, (seen, other, probe) in found.items():
            print(f"\n{name}: labelled {seen:.3f}, not labelled {other:.3f}, language probe {probe:.3f}", end="")
    assert found["invariant"][1] >= found["plain"][1] + 0.1  # chance moves it by as much
    assert found["invariant"][0] >= found["plain"][0] - 0.01
    assert found["centred"][1] >= found["plain"][1] + 0.25
