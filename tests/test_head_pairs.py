"""Heads of two texts: what they learn, their explanations, and that they read what the task `pairs` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec import WordVectors, fit
from stillvec.cli import main
from stillvec.errors import UsageError
from stillvec.heads.pair_head import divide_pairs, join_pairs, pair_features

WORDS = ("ice", "snow", "fire", "heat", "the", "house", "sun", "rain")


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, np.random.default_rng(0).standard_normal((len(WORDS), 12)).astype(np.float32))


def make_pairs(n: int = 120, seed: int = 0) -> list[tuple[tuple[str, str], str]]:
    """The same words in another order, or other words."""
    random, made = np.random.default_rng(seed), []
    for _ in range(n):
        words = [str(word) for word in random.choice(WORDS, 3, replace=False)]
        same = bool(random.integers(2))
        other = [*random.permutation(words)] if same else [str(word) for word in random.choice(WORDS, 3, replace=False)]
        made.append(((" ".join(words), " ".join(map(str, other))), "same" if {*other} == {*words} else "other"))
    return made


@pytest.mark.parametrize("spec", ["pair", "pair:hidden=16,epochs=40,rate=1e-2,patience=40"])
def test_a_head_learns_which_texts_are_the_same_and_its_folder_predicts_it(
    spec: str, vectors: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = fit(vectors, make_pairs(), spec, out=tmp_path / "head", device="cpu")
    pairs, gold = zip(*make_pairs(60, 1), strict=True)
    assert np.mean([ours == theirs for ours, theirs in zip(head.predict(pairs), gold, strict=True)]) > 0.85
    loaded = stillvec.load_head(tmp_path / "head")
    np.testing.assert_array_equal(loaded.predict_proba(pairs), head.predict_proba(pairs))
    assert main(["predict", str(tmp_path / "head"), "ice snow\tsnow ice"]) == 0
    assert capsys.readouterr().out.startswith("same\t")
    assert len(head.predict([("", ""), ("unknown", "ice")])) == 2
    with pytest.raises(UsageError, match="a pair of texts"):
        head.predict(["one text"])


@pytest.mark.parametrize("spec", ["pair", "pair:tuned=true,epochs=3"])
def test_an_explanation_sums_to_the_score(spec: str, vectors: WordVectors) -> None:
    head = fit(vectors, make_pairs(), spec, device="cpu", packing="none")
    pairs = [pair for pair, _ in make_pairs(20, 2)]
    scores = head.score(pairs)
    for row, why in zip(scores, head.explain(pairs), strict=True):
        at = head.labels.index(why.label)
        rest = float(head.arrays["bias"][at])
        assert sum(why.weights) + rest == pytest.approx(float(row[at]), abs=1e-3)
        assert why.words[3] == "|"
        assert why.weights[3] == 0


def test_numpy_predicts_what_torch_trained(vectors: WordVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    from stillvec.heads import head_training

    groups: list[Any] = []
    measure = head_training._measure_labels
    monkeypatch.setattr(
        head_training, "_measure_labels", lambda group, lesson: groups.append(group) or measure(group, lesson)
    )
    data = [*make_pairs(60), (("unknown words", "ice"), "other"), (("", "snow the"), "other")]
    head = fit(vectors, data, "pair:hidden=8,epochs=2", device="cpu", packing="none")
    expected = groups[0].predict_scores(np.arange(len(data)))[0]
    np.testing.assert_allclose(head.score([pair for pair, _ in data]), expected, atol=1e-4)


def test_pairs_are_joined_and_divided_and_the_features_are_those_of_means(vectors: WordVectors) -> None:
    head = fit(vectors, make_pairs(), "pair", packing="none")
    texts = ["ice snow", "fire", "", "the house sun", "unknown", "rain"]
    joined = join_pairs(head._lookup.read_texts(texts))
    assert joined.lengths.tolist() == [4, 4, 3]
    assert divide_pairs(joined).tolist() == [False, False, True, True] + [True] * 4 + [False, True, True]
    matrix = dict(zip(WORDS, np.asarray(vectors.matrix), strict=True))
    means = [np.mean([matrix[word] for word in text.split() if word in matrix] or [np.zeros(12)], 0) for text in texts]
    expected = pair_features(np.float32(means[::2]), np.float32(means[1::2]))
    given = [(texts[at], texts[at + 1]) for at in (0, 2, 4)]
    np.testing.assert_allclose(head.encode(given), expected, atol=1e-5)
    flipped = head.score([("snow ice", "fire"), ("ice snow", "fire")])
    np.testing.assert_allclose(flipped[0], flipped[1], atol=1e-6)


def test_an_adversary_changes_what_is_learnt_and_options_of_texts_are_refused(vectors: WordVectors) -> None:
    plain, zero, moved = (
        fit(vectors, make_pairs(40), "pair:hidden=4,epochs=1", options, device="cpu")
        for options in ((), ("adversarial:epsilon=0",), ("adversarial",))
    )
    assert plain.arrays["weights"].tobytes() == zero.arrays["weights"].tobytes()
    assert not np.array_equal(plain.arrays["weights"], moved.arrays["weights"])
    for wrong in ("teacher:model=minilm", "teacher:model=minilm,augment=2"):
        with pytest.raises(UsageError, match=r"pairs|Pairs"):
            fit(vectors, make_pairs(40), "pair", (wrong,), device="cpu")
