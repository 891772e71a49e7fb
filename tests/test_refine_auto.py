"""A chain chosen on development pairs: what helps is kept, what does not is left out and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from stillvec.cli import main
from stillvec.errors import LexiconError, UsageError
from stillvec.formats import load, read_manifest, save
from stillvec.lexicons import read_rated_pairs
from stillvec.numerics import spearman
from stillvec.refinement import refine_steps
from stillvec.refinement.auto_steps import AutoSteps
from stillvec.vectors import WordVectors
from stillvec.verbs.transformation import refine

WORDS = [f"w{row}" for row in range(200)]


def _cosines(rows: Any, pairs: Any) -> Any:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(1)


@pytest.fixture
def true() -> Any:
    """What words mean; people judge by it."""
    return np.random.default_rng(0).normal(size=(200, 10))


@pytest.fixture
def pairs(true: Any, tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    drawn = random.integers(0, 200, (300, 2))
    said = _cosines(true, drawn) + 0.1 * random.normal(size=300)
    lines = [f"w{a}\tw{b}\t{s:.4f}" for (a, b), s in zip(drawn, said, strict=True)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines))
    return tmp_path / "pairs.tsv"


def _shared_direction(true: Any) -> WordVectors:
    """One direction in which all words lie, more or less, hides the rest."""
    along = np.random.default_rng(2).normal(8, 4, (200, 1)) * np.eye(10)[0]
    return WordVectors(WORDS, (true + along).astype(np.float32))


def _tried(step: AutoSteps, vectors: WordVectors) -> dict[str, dict[str, Any]]:
    return {made["step"]: made for made, _ in refine_steps(vectors, [step])}


def test_what_helps_is_kept_and_what_does_not_is_left_out(true: Any, pairs: Path) -> None:
    hidden = _shared_direction(true)
    tried = _tried(AutoSteps((str(pairs),)), hidden)
    assert not tried["all_but_the_top"].get("left_out")
    gain = tried["all_but_the_top"]["gain"]
    assert 0 < gain["low"] < gain["gain"] < gain["high"]
    clean = _tried(AutoSteps((str(pairs),)), WordVectors(WORDS, true.astype(np.float32)))
    assert all(made.get("left_out") for made in clean.values())
    assert len(clean) == 2


def test_the_vectors_are_those_of_the_steps_that_were_kept(true: Any, pairs: Path) -> None:
    hidden = _shared_direction(true)
    kept = [made for made, _ in refine_steps(hidden, [AutoSteps((str(pairs),))]) if not made.get("left_out")]
    after = AutoSteps((str(pairs),))(hidden)
    assert np.array_equal(after.matrix, refine(hidden, *kept).matrix)
    rated_pairs = np.array([[int(a[1:]), int(b[1:])] for a, b, _ in read_rated_pairs(pairs)[str(pairs)]])
    said = [score for *_, score in read_rated_pairs(pairs)[str(pairs)]]
    assert (
        spearmanr(said, _cosines(after.matrix, rated_pairs))[0]
        > spearmanr(said, _cosines(hidden.matrix, rated_pairs))[0] + 0.1
    )


def test_a_lexicon_that_tells_what_the_vectors_lack_is_kept_without_the_pairs(true: Any, tmp_path: Path) -> None:
    """Vectors are what words mean and noise; the lexicon joins words of like meaning, the judged pairs among them."""
    random = np.random.default_rng(3)
    groups = np.arange(200) % 20
    meaning = true[groups]
    noisy = WordVectors(WORDS, (meaning + 1.5 * random.normal(size=(200, 10))).astype(np.float32))
    drawn = random.integers(0, 200, (400, 2))
    said = _cosines(meaning, drawn)
    lines = [f"w{a}\tw{b}\t{s:.4f}" for (a, b), s in zip(drawn, said, strict=True) if a != b]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines))
    (tmp_path / "list.txt").write_text("\n".join(" ".join(f"w{i}" for i in range(g, 200, 20)) for g in range(20)))
    (tmp_path / "nonsense.txt").write_text("\n".join(f"w{a} w{b}" for a, b in random.integers(0, 200, (600, 2))))
    rated_pairs = str(tmp_path / "pairs.tsv")
    kept = _tried(AutoSteps((rated_pairs,), (str(tmp_path / "list.txt"),)), noisy)
    (retrofitted,) = [made for name, made in kept.items() if "retrofit" in name]
    assert not retrofitted.get("left_out")
    assert retrofitted["settings"]["without"] == (rated_pairs,)
    (nonsense,) = [
        made
        for name, made in _tried(AutoSteps((rated_pairs,), (str(tmp_path / "nonsense.txt"),)), noisy).items()
        if "retrofit" in name
    ]
    assert nonsense["left_out"]


def test_the_verb_tells_every_gain_and_keeps_the_chosen_chain(
    true: Any, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = _shared_direction(true)
    save(hidden, tmp_path / "v")
    call = ["refine", str(tmp_path / "v"), "--step", f"auto:pairs={pairs}", "--step", "normalize", "--out"]
    assert main([*call, str(tmp_path / "r")]) == 0
    out = capsys.readouterr().out
    assert "all_but_the_top: 200 words x 10, gain 0." in out
    assert "similarity_order: left out, gain" in out
    chain = read_manifest(tmp_path / "r")["refined"]
    assert [each["step"] for each in chain] == ["all_but_the_top", "normalize"]
    assert chain[0]["chosen_by"] == "auto"
    assert np.array_equal(load(tmp_path / "r").matrix, refine(hidden, *chain).matrix)
    assert np.array_equal(load(tmp_path / "r").matrix, refine(hidden, f"auto:pairs={pairs}", "normalize").matrix)


def test_the_best_of_many_that_are_no_better_is_not_taken_for_better(true: Any, pairs: Path) -> None:
    """Twenty that differ by chance, twenty times: whoever looked at the held-out pairs would keep most of them."""
    step = AutoSteps((str(pairs),), resamples=200)
    rated_pairs = step._split_pairs(WordVectors(WORDS, true.astype(np.float32)))
    (plain,) = [_cosines(true, np.stack([j.left, j.right], 1)) for j in rated_pairs]
    random = np.random.default_rng(4)
    kept = 0
    for _ in range(20):
        base, *others = plain + 0.3 * random.normal(size=(21, len(plain)))
        kept += step._gain(rated_pairs, [base], [[other] for other in others])[1] > 0
    assert kept <= 3


def test_what_is_left_out_changes_nothing_for_the_next(true: Any, pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def shift(vectors: WordVectors) -> WordVectors:
        given.append(vectors.matrix)
        return WordVectors(vectors.vocabulary, vectors.matrix + 1)

    monkeypatch.setattr(AutoSteps, "_kinds", lambda *_: [[shift], [shift]])
    vectors = WordVectors(WORDS, true.astype(np.float32))
    for gain, times in (((0.1, -0.1, 0.3), 0), ((0.1, 0.05, 0.3), 1)):
        given.clear()
        monkeypatch.setattr(AutoSteps, "_gain", lambda *_, gain=gain: gain)
        assert len([*AutoSteps((str(pairs),)).choose(vectors)]) == 2
        assert np.allclose(given[-1 - times], vectors.matrix + times)


def test_development_pairs_are_taken_out_of_every_lexicon() -> None:
    *_, lexical = AutoSteps(("pairs.tsv",), ("list.txt",), ("apart.txt",))._kinds(10)
    assert len(lexical) == 4
    assert all(step.without == ("pairs.tsv",) for step in lexical)  # type: ignore[attr-defined]


def test_spearman_is_scipys(true: Any) -> None:
    x, y = true[:3, :9].round(), true[3:6, :9].round()
    assert np.allclose(spearman(x, y), [spearmanr(a, b)[0] for a, b in zip(x, y, strict=True)])
    assert spearman(np.ones(5), np.arange(5)) == 0


def test_rated_pairs_are_read_with_their_scores(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("left\tright\tscore\nold\tnew\t1.5\n")
    assert read_rated_pairs(tmp_path) == {str(tmp_path / "a.tsv"): [("old", "new", 1.5)]}
    (tmp_path / "b.tsv").write_text("old\tnew\t1.5\nold\tnew\tmany\n")
    with pytest.raises(LexiconError, match=r"b\.tsv:2: .*a word and a number"):
        read_rated_pairs(tmp_path)


def test_too_few_pairs_and_invalid_settings_are_refused(true: Any, tmp_path: Path) -> None:
    (tmp_path / "few.tsv").write_text("w1\tw2\t1\nw2\tw3\t2\n")
    with pytest.raises(UsageError, match="20 pairs"):
        AutoSteps((str(tmp_path / "few.tsv"),))(WordVectors(WORDS, true))
    with pytest.raises(UsageError, match="folds"):
        AutoSteps(("x",), folds=1)
