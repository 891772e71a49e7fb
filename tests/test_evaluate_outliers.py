"""Outliers, synonyms and neighbours in common: against slow loops over the papers' definitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillvec import WordVectors
from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation import evaluate
from stillvec.evaluation.neighbour_overlap import neighbour_overlap
from stillvec.evaluation.outliers import Outliers
from stillvec.evaluation.synonyms import Synonyms
from stillvec.heads.lookup import Lookup

GROUPS = [([f"{name}{n}" for n in range(8)], [f"out{name}{n}" for n in range(8)]) for name in "ab"]


def block(words: list[str], outliers: list[str]) -> str:
    return "\n".join([*words, "", *outliers]) + "\n"


@pytest.fixture
def vectors() -> WordVectors:
    """Words of a group are near each other; most outliers are not."""
    generator = np.random.default_rng(0)
    words, points = [], []
    for group, outliers in GROUPS:
        middle = generator.standard_normal(10)
        words += group + outliers
        points += [middle + 0.7 * generator.standard_normal(10) for _ in group]
        points += [0.7 * middle + 0.8 * generator.standard_normal(10) for _ in outliers]
    return WordVectors(words, points)


def slow_position(vectors: WordVectors, group: list[str], outlier: str) -> float:
    """The place of the outlier by how compact the rest is without each word, from 0 to 1."""
    everyone = [*group, outlier]

    def compactness(rest: list[str]) -> float:
        return float(np.mean([vectors.similarity(a, b) for a in rest for b in rest if a != b]))

    without = {word: compactness([other for other in everyone if other != word]) for word in everyone}
    return sorted(without, key=lambda word: without[word]).index(outlier) / len(group)


def test_accuracy_and_opp_are_those_of_the_definition(tmp_path: Path, vectors: WordVectors) -> None:
    (tmp_path / "outliers").mkdir()
    (tmp_path / "outliers" / "two.txt").write_text("\n".join(block(*group) for group in GROUPS))
    wanted = [slow_position(vectors, group, outlier) for group, outliers in GROUPS for outlier in outliers]
    accuracy, opp = evaluate(vectors, tmp_path, ["outliers"]).scores
    assert accuracy.value == np.mean(np.array(wanted) == 1)
    assert opp.value == pytest.approx(np.mean(wanted))
    assert 0 < accuracy.value < opp.value < 1
    assert (accuracy.n_items, accuracy.n_covered) == (16, 16)
    assert [detail.section for detail in accuracy.details] == ["two 1", "two 2"]
    assert all(score.low < score.value < score.high for score in (accuracy, opp))


def test_a_folder_a_file_and_a_table_hold_the_same(tmp_path: Path) -> None:
    place = tmp_path / "outliers"
    (place / "8-8-8").mkdir(parents=True)
    (place / "empty").mkdir()
    for number, group in enumerate(GROUPS):
        (place / "8-8-8" / f"topic{number}.txt").write_text(block(*group).replace("\n", "\r\n"))
    (place / "both.txt").write_text("\n\n".join(block(*group) for group in GROUPS))
    rows = [f'{n},topic{n},"{[*outliers, ""]}","{words}"' for n, (words, outliers) in enumerate(GROUPS)]
    (place / "table.csv").write_text("\n".join([",category,outliers,words", *rows]))
    found = Outliers().find(tmp_path)
    assert [path.name for path in found] == ["8-8-8", "both.txt", "table.csv"]
    folder, file, table = (Outliers().read(path) for path in found)
    assert folder.texts == file.texts == table.texts
    assert folder.sections == table.sections
    assert [*dict.fromkeys(folder.sections)] == ["topic0", "topic1"]


def test_groups_with_unknown_words_are_skipped_or_filled_and_equals_do_not_count(
    tmp_path: Path, vectors: WordVectors
) -> None:
    path = tmp_path / "o.txt"
    path.write_text(block(*GROUPS[0]) + "\n" + block(*GROUPS[1]))
    some = vectors.subset(word for word in vectors.words if word not in ("a3", "outb2"))
    items = Outliers().read(path)
    assert Outliers().answer(Lookup(some), items).covered.sum() == 7
    filled = Outliers().answer(Lookup(some, "zero"), items)
    assert filled.covered.sum() == 7
    assert filled.values["accuracy"][10]  # a word without a direction is the least like the others
    same = WordVectors(vectors.words, np.ones((len(vectors), 3)))
    assert not Outliers().answer(Lookup(same), items).values["opp"].any()


def test_the_choice_of_highest_cosine_is_the_answer(tmp_path: Path, vectors: WordVectors) -> None:
    generator = np.random.default_rng(1)
    questions = [[vectors.words[i] for i in generator.choice(len(vectors), 5, replace=False)] for _ in range(30)]
    (tmp_path / "synonyms").mkdir()
    path = tmp_path / "synonyms" / "esl.txt"
    path.write_text("# ours\n" + "\n".join(" | ".join(words) for words in [*questions, ["a1", "nobody", "a2"]]))
    wanted = [
        max(words[1:], key=lambda other, word=words[0]: vectors.similarity(word, other)) == words[1]
        for words in questions
    ]
    (score,) = evaluate(vectors, tmp_path, ["synonyms"]).scores
    assert score.value == np.mean(wanted)
    assert 0 < score.low < score.value < score.high < 1
    assert (score.n_items, score.n_covered) == (31, 30)
    same = WordVectors(vectors.words, np.ones((len(vectors), 3)))
    assert not Synonyms().answer(Lookup(same), Synonyms().read(path)).values["accuracy"].any()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "rug | sofa | ottoman\nhall | corridor | doorway\n"),
        ("a.tsv", "rug\tsofa\tottoman\nhall\tcorridor\tdoorway"),
        ("a.txt", "rug sofa ottoman\nhall corridor doorway"),
        ("a.csv", "question,answer,wrong\nrug,sofa,ottoman\nhall,corridor,doorway\n"),
    ],
)
def test_choices_are_separated_by_bars_tabs_spaces_or_commas(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert Synonyms().read(tmp_path / name).texts == (("rug", "sofa", "ottoman"), ("hall", "corridor", "doorway"))


@pytest.mark.parametrize(
    ("kind", "name", "content", "line", "message"),
    [
        (Synonyms, "a.txt", "a | b\n", 1, "2 fields"),
        (Synonyms, "a.txt", "", 1, "empty"),
        (Outliers, "a.txt", "a\nb\n\nc\n\nd\n", 6, "outliers"),
        (Outliers, "a.txt", "a\n\nb\n", 1, "1 and 1"),
        (Outliers, "a.txt", "\n", 1, "empty"),
        (Outliers, "a.csv", "category,words\n", 1, "category, words, outliers"),
        (Outliers, "a.csv", "category,words,outliers\nx,a b,['c']\n", 2, "'a b'"),
    ],
)
def test_an_invalid_file_is_named(
    tmp_path: Path, kind: type[Synonyms] | type[Outliers], name: str, content: str, line: int, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=message) as caught:
        kind().read(tmp_path / name)
    assert (caught.value.path, caught.value.line) == (str(tmp_path / name), line)


def tables() -> tuple[WordVectors, WordVectors]:
    generator = np.random.default_rng(6)
    points = generator.standard_normal((60, 5))
    words = [f"w{number}" for number in range(60)]
    a = WordVectors(["only", *words], np.vstack([points[:1], points]))
    order = generator.permutation(60)
    noisy = points + 0.4 * generator.standard_normal((60, 5))
    return a, WordVectors([*(words[i] for i in order), "other"], np.vstack([noisy[order], points[:1]]))


def test_neighbours_in_common_are_those_of_a_slow_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = tables()
    common = [word for word in a.words if word in b]
    shares = [
        len(
            {near for near, _ in a.nearest(word, 7, exclude=["only"])}
            & {near for near, _ in b.nearest(word, 7, exclude=["other"])}
        )
        / 7
        for word in common
    ]
    found = neighbour_overlap(a, b, k=7)
    assert found.value == pytest.approx(np.mean(shares))
    assert found.low < found.value < found.high < 1
    assert (found.n_words, found.chance) == (60, pytest.approx(7 / 59))
    monkeypatch.setattr("stillvec.numerics.rows._CELLS", 500)  # blocks of eight words
    assert neighbour_overlap(a, b, k=7) == found


def test_neighbours_are_searched_among_the_requested_words() -> None:
    a, b = tables()
    some = [f"w{number}" for number in range(20)]
    assert neighbour_overlap(a, b, 3, some) == neighbour_overlap(a.subset(some), b.subset(some), 3, None)
    assert neighbour_overlap(a, b, 3, 20) == neighbour_overlap(a, b, 3, some)
    assert neighbour_overlap(a, a, 3).value == 1
    with pytest.raises(UsageError, match=r"more than 10 common words.*got 5"):
        neighbour_overlap(a, b, 10, some[:5])
    with pytest.raises(UsageError, match="got 0"):
        neighbour_overlap(a, b, 0)
