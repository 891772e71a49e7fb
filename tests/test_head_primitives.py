"""Tags written part by part: division of tags, decoding against a slow search, tags that training lacks."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec import WordVectors, fit
from stillvec.errors import UsageError
from stillvec.heads import networks, primitive_networks
from stillvec.heads.primitives_head import decode_tags
from stillvec.heads.tag_parts import choose_split, is_well_formed, join_parts, split_tag

CATEGORIES = ("NP", "N/N", "(S[dcl]\\NP)/NP", "((S\\NP)\\(S\\NP))/NP", ".", ",", "conj", "S[wq]/(S[q]/NP)")
FEATURES = ("NOUN|Case=Gen|Number=Plur", "PUNCT", "VERB|Mood=Ind|Person[psor]=3|Tense=Past", "X|Abbr=Yes", "|", "a||b|")
STEMS, ENDINGS = ("talo", "kala", "puu", "kivi"), ("lla", "ssa", "sta", "n")
CASES = {"lla": "Ade", "ssa": "Ine", "sta": "Ela", "n": "Gen"}


@pytest.mark.parametrize(("tags", "split"), [(CATEGORIES, "ccg"), (FEATURES, "features")])
def test_the_parts_of_a_tag_joined_are_the_tag(tags: tuple[str, ...], split: str) -> None:
    assert [join_parts(split_tag(tag, split)) for tag in tags] == [*tags]
    assert choose_split(tags) == split
    assert split_tag("(S\\NP)/NP", "ccg") == ("(", "S", "\\", "NP", ")", "/", "NP")
    assert split_tag("NOUN|Case=Gen|Number=Plur", "features") == ("NOUN", "|Case=Gen", "|Number=Plur")


@pytest.mark.parametrize("name", ["ccg-questions.train", "ccg-genia", "morphology-fi.train", "morphology-fi.test"])
def test_every_tag_of_real_data_is_joined_again_and_well_formed(name: str, data_folder: Path) -> None:
    file = data_folder.parent / f"workshop/tagging/{name}.tsv"
    if not file.exists():
        pytest.skip("no data of the workshop")
    tags = {line.split("\t")[-1] for line in file.read_text("utf-8").splitlines() if line}
    split = choose_split(tuple(tags))
    assert split == ("ccg" if name.startswith("ccg") else "features")
    assert all(join_parts(split_tag(tag, split)) == tag and is_well_formed(tag, split) for tag in tags)


@pytest.mark.parametrize(
    ("tag", "split"),
    [("S/", "ccg"), ("(S\\NP", "ccg"), ("S\\NP/NP", "ccg"), ("()", "ccg"), ("S NP", "ccg"), ("S)NP", "ccg"),
     ("NOUN|Case", "features"), ("|Case=Gen", "features"), ("NOUN|Number=Sing|Case=Gen", "features"),
     ("NOUN|Case=Gen|Case=Nom", "features")],
)  # fmt: skip
def test_a_malformed_tag_is_seen(tag: str, split: str) -> None:
    assert not is_well_formed(tag, split)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"_UNITS": 24, "_MERGED": 24, "_EMBEDDED": 8, "_DECODER": 32}.items():
        monkeypatch.setattr(primitive_networks, name, size)


def make_arrays(random: np.random.Generator, n_primitives: int = 2, width: int = 3, units: int = 2) -> dict[str, Any]:
    shapes = {
        "embedding": (n_primitives + 1, 2), "decoder_enter": (width + 2, 4 * units),
        "decoder_recur": (units, 4 * units), "decoder_bias": (4 * units,), "weights": (units, n_primitives + 1),
        "bias": (n_primitives + 1,),
    }  # fmt: skip
    arrays: dict[str, Any] = {name: 2 * random.standard_normal(shape) for name, shape in shapes.items()}
    return arrays | {"longest": np.array([2], np.int32)}


def score_slowly(words: np.ndarray, tags: list[list[int]], arrays: dict[str, Any]) -> float:
    """The log-probability of the primitives of a sentence, step by step, with what is not allowed left out."""
    units = len(arrays["decoder_recur"])
    state = cell = np.zeros(units)
    before, total = 0, 0.0
    for vector, tag in zip(words, tags, strict=True):
        for place, part in enumerate([*tag, 0]):
            gates = np.concatenate([vector, arrays["embedding"][before]]) @ arrays["decoder_enter"]
            gates = gates + state @ arrays["decoder_recur"] + arrays["decoder_bias"]
            write, keep, show = (1 / (1 + np.exp(-gates[at * units : (at + 1) * units])) for at in range(3))
            cell = keep * cell + write * np.tanh(gates[3 * units :])
            state = show * np.tanh(cell)
            scores = state @ arrays["weights"] + arrays["bias"]
            total += scores[part] - np.logaddexp.reduce(scores)
            assert part > 0 or place > 0
            before = part
    return total


def test_a_wide_beam_finds_the_best_of_all_sequences_and_a_narrow_one_no_better() -> None:
    random = np.random.default_rng(0)
    tags = [[1], [2], [1, 1], [1, 2], [2, 1], [2, 2]]
    for _ in range(10):
        arrays, words = make_arrays(random), random.standard_normal((2, 2, 3))
        found = decode_tags(words, np.array([2, 1]), arrays, 60)
        for at, length in enumerate((2, 1)):
            scores = {
                str(each): score_slowly(words[at, :length], [*each], arrays)
                for each in itertools.product(tags, repeat=length)
            }
            best = score_slowly(words[at, :length], found[at], arrays)
            assert best == pytest.approx(max(scores.values()))
            greedy = decode_tags(words[[at]], np.array([length]), arrays, 1)[0]
            assert score_slowly(words[at, :length], greedy, arrays) <= best + 1e-9


def write_sentences(n: int, seed: int, left_out: tuple[str, ...] = ()) -> list[tuple[list[str], list[str]]]:
    """Words whose tag is a case, a number and a person; some tags are left out."""
    random, made = np.random.default_rng(seed), []
    while len(made) < n:
        drawn = [[str(random.choice([*each])) for each in FORMS] for _ in range(random.integers(2, 5))]
        pairs = [("".join(parts), make_tag(*parts[1:])) for parts in drawn]
        kept = [pair for pair in pairs if pair[1] not in left_out]
        if kept:
            made.append(([word for word, _ in kept], [tag for _, tag in kept]))
    return made


def make_tag(number: str, ending: str, person: str) -> str:
    named = f"|Person={person}" if person else ""
    return f"NOUN|Case={CASES[ending]}|Number={'Plur' if number else 'Sing'}{named}"


FORMS = STEMS, ("", "i"), ENDINGS, ("", "1", "2")
LEFT_OUT = tuple(make_tag(*parts) for parts in (("i", "lla", ""), ("", "ssa", "1"), ("i", "n", "2"), ("", "sta", "2")))


@pytest.fixture
def vectors() -> WordVectors:
    random = np.random.default_rng(1)
    rows = [{part: random.standard_normal(24) for part in each} for each in FORMS]
    words = [*itertools.product(*FORMS)]
    made = [sum(table[part] for table, part in zip(rows, parts, strict=True)) for parts in words]
    return WordVectors(["".join(parts) for parts in words], np.array(made, np.float32))


def test_a_tag_that_training_lacks_is_written(vectors: WordVectors, small: None, tmp_path: Path) -> None:
    head = fit(
        vectors, write_sentences(200, 0, LEFT_OUT), "primitives:epochs=25,rate=1e-2,patience=9",
        out=tmp_path / "head", device="cpu",
    )  # fmt: skip
    assert not {*LEFT_OUT} & {*head.labels}
    tested = write_sentences(40, 1)
    said = head.predict([words for words, _ in tested])
    pairs = [pair for (_, gold), tags in zip(tested, said, strict=True) for pair in zip(gold, tags, strict=True)]
    unseen = [ours == gold for gold, ours in pairs if gold not in head.labels]
    assert np.mean([ours == gold for gold, ours in pairs]) > 0.8
    assert np.mean(unseen) > 0.3
    assert stillvec.load_head(tmp_path / "head").predict([words for words, _ in tested]) == said
    assert head.predict(["", "talolla"])[0] == []
    with pytest.raises(UsageError, match="probabilities"):
        head.predict_proba(["talo"])


def test_torch_and_numpy_give_the_same_likelihood(vectors: WordVectors, small: None, monkeypatch: Any) -> None:
    groups: list[Any] = []
    build = primitive_networks.PrimitiveNetworks.__init__
    monkeypatch.setattr(
        primitive_networks.PrimitiveNetworks,
        "__init__",
        lambda self, *a, **k: (groups.append(self), build(self, *a, **k))[1],
    )
    data = write_sentences(30, 2)
    head = fit(vectors, data, "primitives:epochs=12,rate=1e-2,patience=20", device="cpu", packing="none")
    import torch

    group = groups[0]
    numbers = torch.arange(3)[None]
    width = max(len(words) for words, _ in data[:3])
    with torch.no_grad():
        logs = group.score(numbers, width).log_softmax(3)[0]
    from stillvec.heads.tagger_head import iterate_states

    names = ["", *bytes(head.arrays["primitives"]).decode().split("\n")]
    for number in range(3):
        words, tags = data[number]
        sequences = head._lookup.read_tokens([words])
        ((_, states, _),) = iterate_states(head.arrays, sequences)
        merged = np.maximum(states[0] @ head.arrays["merge"] + head.arrays["merge_bias"], 0)
        parts = [[names.index(part) for part in split_tag(tag, "features")] for tag in tags]
        steps = [part for of_word in parts for part in (*of_word, 0)]
        ours = float(sum(logs[number, at, part] for at, part in enumerate(steps)))
        assert score_slowly(merged, parts, head.arrays) == pytest.approx(ours, rel=1e-4)


def test_tags_of_spans_are_refused(vectors: WordVectors) -> None:
    data = [(["talo", "on"], ["B-X", "O"])] * 20
    with pytest.raises(UsageError, match="parts"):
        fit(vectors, data, "primitives")


def test_the_loop_of_an_lstm_is_that_of_torch() -> None:
    import torch

    layer = torch.nn.LSTM(3, 4, batch_first=True)
    x = torch.randn(2, 5, 3)
    order = [0, 1, 3, 2]  # torch has the cell before the output
    enter, recur, bias, other = (
        torch.cat([part.chunk(4)[at] for at in order]) for part in layer.parameters()
    )  # fmt: skip
    gates = (x @ enter.T + bias + other)[None]
    assert torch.allclose(networks.scan_lstm(gates, recur.T[None])[0], layer(x)[0], atol=1e-6)
