"""Vectors from the attributes of a lexicon: sums of attributes, the formula, what is taken out, and WordNet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillvec import WordVectors, refine, save
from stillvec.cli import main
from stillvec.errors import LexiconError, UsageError
from stillvec.formats import load
from stillvec.lexicons.word_attributes import read_descriptions
from stillvec.numerics import cosines
from stillvec.refinement.lexicon_attributes import LexiconAttributes

NOUNS = """\
00000001 03 n 01 thing 0 000 | what there is
00000002 05 n 02 animal 0 beast 0 001 @ 00000001 n 0000 | a living thing that moves; "an animal"
00000003 05 n 02 dog 0 hound 0 001 @ 00000002 n 0000 | an animal that barks
"""


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    (tmp_path / "wn").mkdir()
    for name, text in (("noun", NOUNS), ("verb", ""), ("adj", ""), ("adv", "")):
        (tmp_path / "wn" / f"data.{name}").write_text(text, "utf-8")
    return tmp_path / "wn"


def _make_space(tmp_path: Path) -> tuple[WordVectors, np.ndarray, list[str]]:
    """2000 words, each the sum of 3 of 60 attributes and noise (sheet of the paper: signal to noise 4)."""
    random = np.random.default_rng(0)
    marks = np.stack([random.permutation(60) < 3 for _ in range(2000)])
    truth = marks @ random.normal(size=(60, 20))
    truth += random.normal(size=truth.shape) * truth.std() / 4
    words = [f"w{row}" for row in range(2000)]
    lines = [
        f"{word}\t{' '.join(f's{at}' for at in np.flatnonzero(row))}\n" for word, row in zip(words, marks, strict=True)
    ]
    (tmp_path / "lexicon.tsv").write_text("".join(lines))
    shuffled = random.permutation(2000)
    wrong = [f"{words[row]}\t{line.partition(chr(9))[2]}" for row, line in zip(shuffled, lines, strict=True)]
    (tmp_path / "wrong.tsv").write_text("".join(wrong))
    return WordVectors(words[:1600], truth[:1600]), truth, words


def test_hidden_words_are_found_again_from_their_attributes_alone(tmp_path: Path) -> None:
    vectors, truth, words = _make_space(tmp_path)
    for name, low, high in (("lexicon", 0.85, 1.0), ("wrong", -0.15, 0.15)):
        step = LexiconAttributes((str(tmp_path / f"{name}.tsv"),), spelling=False, extend=True, weight=0)
        after = step(vectors)
        assert after.words[:1600] == vectors.words
        assert np.allclose(after.matrix[:1600], vectors.matrix)
        assert {*after.words[1600:]} == {*words[1600:]}
        assert not after.vocabulary.counts[1600:].any()
        found = after[[*words[1600:]]]
        mean = vectors.matrix.mean(0)
        assert low <= cosines(found - mean, truth[1600:] - mean).mean() <= high


def test_a_word_gains_the_weighted_mean_of_its_attributes(tmp_path: Path) -> None:
    """The ridge regression in dense algebra; a word without attributes stays."""
    (tmp_path / "a.tsv").write_text("a\tx y\nb\ty\nc\tx z\nd\tz\n")
    matrix = np.random.default_rng(0).normal(size=(5, 3))
    vectors = WordVectors([*"abcde"], matrix)
    shares = np.array([[0.5, 0.5, 0], [0, 1, 0], [0.5, 0, 0.5], [0, 0, 1]])
    targets = matrix[:4] - matrix[:4].mean(0)
    table = np.linalg.solve(shares.T @ shares + 0.3 * np.eye(3), shares.T @ targets)
    after = LexiconAttributes((str(tmp_path / "a.tsv"),), weight=0.7, ridge=0.3, sweeps=50, spelling=False)(vectors)
    assert after.matrix[:4] == pytest.approx(matrix[:4] + 0.7 * shares @ table, abs=1e-4)
    assert after.matrix[4] == pytest.approx(matrix[4])


def test_wordnet_says_synsets_categories_and_glosses(wordnet: Path) -> None:
    dog = read_descriptions([wordnet])["dog"]
    assert dog == {
        "category:05": 1, "above:noun:00000001": 0.5, "above:noun:00000002": 0.5, "synset:noun:00000002": 1,
        "synset:noun:00000003": 1, "gloss:animal": 1, "gloss:barks": 1, "gloss:dog": 1,
    }  # fmt: skip


def test_of_an_evaluated_pair_neither_word_is_told_of_the_other(wordnet: Path) -> None:
    told = read_descriptions([wordnet], {("animal", "dog"), ("animal", "beast")})
    assert {*told["dog"]} == {"category:05", "above:noun:00000001", "synset:noun:00000003", "gloss:barks", "gloss:dog"}
    assert "animal" not in told  # its only synset has the word beast
    assert told["hound"] == read_descriptions([wordnet])["hound"]
    none = read_descriptions([wordnet], {("dog", "hound")})
    assert "dog" not in none
    assert "hound" not in none


def test_wordnet_says_what_a_word_is_derived_from(wordnet: Path) -> None:
    """A pointer is from the first word of its synset to the second word of the other, not to the first."""
    line = "00000001 01 a 02 houndlike 0 doglike 0 001 \\ 00000003 n 0102 | resembling something\n"
    (wordnet / "data.adj").write_text(line, "utf-8")
    told = read_descriptions([wordnet])
    assert {"gloss:hound": 1.0, "gloss:houndlike": 1.0}.items() <= told["houndlike"].items()
    assert not {"gloss:dog", "gloss:hound"} & told["doglike"].keys()
    assert "gloss:hound" not in read_descriptions([wordnet], {("hound", "houndlike")})["houndlike"]


def test_the_command_gives_unknown_words_vectors(
    tmp_path: Path, wordnet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(wordnet))
    save(WordVectors(["animal", "dog", "thing", "barks"], np.eye(4)), tmp_path / "v")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("hound\tdog\t9\n")
    for name, extra in (("whole", ""), ("fair", f":without={pairs}")):
        call = ["refine", str(tmp_path / "v"), "--oov", f"attributes{extra}", "--out", str(tmp_path / name)]
        assert main(call) == 0
    whole, fair = load(tmp_path / "whole"), load(tmp_path / "fair")
    assert whole.nearest("hound", 1)[0][0] == "dog"
    assert "hound" not in fair
    assert np.allclose(whole["dog"], np.eye(4)[1])
    with pytest.raises(UsageError, match="attributes"):
        refine(tmp_path / "v", oov="gloss")
    with pytest.raises(LexiconError):
        refine(tmp_path / "v", f"attributes:lexicon={tmp_path / 'none.tsv'}")
