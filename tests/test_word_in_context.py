"""Words in context: pairs from WordNet's examples, and whether senses tell them apart."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors, evaluate
from stillvec.errors import DatasetError
from stillvec.evaluation.word_in_context import WordInContext, find_threshold, judge
from stillvec.sense_table import SenseTable

SYNSETS = {
    "bank": [
        ["he cashed a check at the bank", "that bank holds the mortgage on my home", "the bank was closed today"],
        ["they pulled the canoe up on the bank", "he sat on the bank of the river"],
        ["a bank"],  # too short
    ],
    "crane": [["the crane lifted the heavy load", "a crane stood in the harbour"]],  # one sense
}
MONEY = ["the bank lent money", "money in a bank account", "his bank wants money"]
RIVER = ["the bank's river", "the river left its bank", "water on the bank"]


def write_wordnet(folder: Path) -> Path:
    lines = []
    for word, synsets in SYNSETS.items():
        for examples in synsets:
            quotes = "; ".join(f'"{example}"' for example in examples)
            lines.append(f"{len(lines) + 1:08} 03 n 01 {word} 0 000 | something; {quotes}  ")
    folder.mkdir()
    (folder / "data.noun").write_text("\n".join(lines) + "\n")
    return folder


def test_pairs_of_examples_are_balanced_and_of_one_half(tmp_path: Path) -> None:
    script = Path(__file__).resolve().parents[1] / "recipes" / "word_in_context.py"
    if not script.exists():
        pytest.skip("a wheel has no recipes")
    recipe = runpy.run_path(str(script))
    read_sense_pairs, parts = recipe["read_sense_pairs"], recipe["PARTS"]
    folder = write_wordnet(tmp_path / "wordnet")
    halves = {part: [*read_sense_pairs(folder, part)] for part in parts}
    (pairs,) = [pairs for pairs in halves.values() if pairs]  # of one word
    assert {pair.word for pair in pairs} == {"bank"}
    assert [pair.same for pair in pairs].count(True) == [pair.same for pair in pairs].count(False) == 4
    sense = {example: number for number, examples in enumerate(SYNSETS["bank"]) for example in examples}
    assert all((sense[pair.one] == sense[pair.other]) == pair.same for pair in pairs)
    assert pairs == [*read_sense_pairs(folder, next(part for part in parts if halves[part]))]


def make_vectors(*, senses: bool) -> WordVectors:
    """Money is in one direction, water in another, and a bank is between them."""
    words = ["bank", "money", "account", "lent", "river", "water", "the", "a"]
    rows = np.array(
        [[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], np.float32
    )
    vocabulary = Vocabulary(words, [50, 20, 20, 20, 20, 20, 5000, 5000])
    texts = np.zeros((2, 1, 8), np.uint8)
    table = SenseTable(vocabulary, [0, 0], rows[[1, 4]] + 0.1 * rows[0], np.array([0.5, 0.5]), texts)
    return WordVectors(vocabulary, rows, senses=table if senses else None)


def write_pairs(folder: Path) -> Path:
    (folder / "word_in_context").mkdir()
    same = [(texts[at], texts[at - 1]) for texts in (MONEY, RIVER) for at in range(3)]
    other = [*zip(MONEY, RIVER, strict=True), *zip(MONEY, RIVER[::-1], strict=True)]
    lines = [f"{label}\tbank\t{one}\t{two}\n" for label, pairs in ((1, same), (0, other)) for one, two in pairs]
    (folder / "word_in_context" / "some.tsv").write_text("".join(lines))
    return folder


def test_senses_tell_uses_apart_and_one_vector_does_not(tmp_path: Path) -> None:
    sets = {"senses": make_vectors(senses=True), "plain": make_vectors(senses=False)}
    report = evaluate(sets, write_pairs(tmp_path), "word_in_context", resamples=10)
    scores = {(score.vectors, score.metric): score.value for score in report.scores if score.words == "own"}
    # all items are of one word, so its threshold is not known: "the same" for all
    assert scores["plain", "accuracy"] == 0.5
    items = WordInContext().read(tmp_path / "word_in_context" / "some.tsv")
    halves = np.arange(len(items)) % 2
    similarity = np.where(items.gold > 0, 0.9, 0.2)
    assert judge(similarity, items.gold, halves).all()
    assert judge(np.ones(len(items)), items.gold, halves).mean() == 0.5


def test_a_threshold_of_other_words_is_used(tmp_path: Path) -> None:
    folder = write_pairs(tmp_path)
    path = folder / "word_in_context" / "some.tsv"
    more = path.read_text().replace("bank", "edge")
    path.write_text(path.read_text() + more)
    vectors = make_vectors(senses=True)
    rows = np.concatenate([vectors.matrix, vectors.matrix[:1]])
    vocabulary = Vocabulary([*vectors.words, "edge"], [*vectors.vocabulary.counts, 50])
    assert vectors.senses is not None
    matrix, texts = vectors.senses.matrix[[0, 1, 0, 1]], np.zeros((4, 1, 8), np.uint8)
    table = SenseTable(vocabulary, [0, 0, 8, 8], matrix, [0.5] * 4, texts)
    both = WordVectors(vocabulary, rows, senses=table)
    report = evaluate({"senses": both, "plain": both.with_matrix(rows)}, folder, "word_in_context", resamples=10)
    scores = {(score.vectors, score.metric): score.value for score in report.scores if score.words == "own"}
    assert scores["plain", "accuracy"] == 0.5
    assert scores["senses", "accuracy"] == 1.0


def test_the_threshold_is_that_of_a_slow_search() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        values, same = generator.integers(0, 6, 12) / 6, generator.integers(0, 2, 12).astype(float)
        correct = [np.sum((values >= each) == (same > 0)) for each in [-1, *np.unique(values) + 1e-9, 2]]
        found = find_threshold(values, same)
        assert np.sum((values >= found) == (same > 0)) == max(correct)


@pytest.mark.parametrize("line", ["1\tbank\ta bank", "2\tbank\ta bank\tthe bank", "1\tbank\ta bank\tthe river"])
def test_a_malformed_line_is_reported(line: str, tmp_path: Path) -> None:
    (tmp_path / "some.tsv").write_text(f"1\tbank\ta bank\tthe bank\n{line}\n")
    with pytest.raises(DatasetError) as caught:
        WordInContext().read(tmp_path / "some.tsv")
    assert caught.value.line == 2
