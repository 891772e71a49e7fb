"""Attributes of words: lexicons read and merged, average precision, a probe of synthetic sums of attributes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stillvec import WordVectors, evaluate
from stillvec.errors import DatasetError, LexiconError, UsageError
from stillvec.evaluation.attributes import Attributes, average_precision
from stillvec.heads.lookup import Lookup
from stillvec.lexicons import read_attributes

NOUNS = """\
  1 a licence
00000001 03 n 01 thing 0 000 | what is
00000002 05 n 02 animal 0 beast 0 001 @ 00000001 n 0000 | a living thing
00000003 05 n 01 Dog 0 001 @ 00000002 n 0000 | a barking animal
00000004 18 n 01 dog 0 001 @ 00000001 n 0000 | an unattractive person
"""


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    (tmp_path / "wn").mkdir()
    for name, text in (("noun", NOUNS), ("verb", "00000009 38 v 01 dog 0 000 | to follow\n"), ("adj", ""), ("adv", "")):
        (tmp_path / "wn" / f"data.{name}").write_text(text, "utf-8")
    return tmp_path / "wn"


def test_attributes_of_wordnet_are_those_of_all_senses(wordnet: Path) -> None:
    above = read_attributes(wordnet)
    assert above["dog"] == {"noun:00000001", "noun:00000002"}
    assert above["beast"] == {"noun:00000001"}
    assert above["thing"] == frozenset()
    assert read_attributes(wordnet, "lexnames")["dog"] == {"05", "18", "38"}


def test_attributes_of_a_table_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("Dog\tanimal pet\ndog\tperson\n$\tunit\n", "utf-8")
    assert read_attributes(path) == {"dog": {"animal", "pet", "person"}, "$": {"unit"}}


@pytest.mark.parametrize("line", ["dog", "dog\t", "\tanimal", "dog\tanimal\tpet"])
def test_a_malformed_line_of_attributes_is_reported(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"cat\tanimal\n{line}\n", "utf-8")
    with pytest.raises(LexiconError) as caught:
        read_attributes(path)
    assert (caught.value.code, caught.value.line) == ("bad-line", 2)
    with pytest.raises(DatasetError) as of_task:
        Attributes().read(path)
    assert (of_task.value.code, of_task.value.line) == ("bad-line", 2)


def test_average_precision_is_the_mean_of_the_precisions_at_the_ranks() -> None:
    scores = np.array([[0.1, 0.9, 0.5, 0.2], [4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
    gold = np.array([[True, True, False, False], [False, False, False, True], [False] * 4])
    assert average_precision(scores, gold).tolist() == [(1 + 2 / 4) / 2, 1 / 4, 0]


def _synthetic(folder: Path, n_words: int = 1000, n_attributes: int = 30) -> tuple[Path, WordVectors]:
    """Three attributes per word; vectors are their sums, with a signal-to-noise ratio of 4."""
    random = np.random.default_rng(0)
    chosen = np.stack([random.permutation(n_attributes)[:3] for _ in range(n_words)])
    words = [f"w{number}" for number in range(n_words)]
    (folder / "lexicons").mkdir()
    path = folder / "lexicons" / "s.tsv"
    lines = [f"{w}\t{' '.join(f'a{at}' for at in row)}\n" for w, row in zip(words, chosen, strict=True)]
    path.write_text("".join(lines), "utf-8")
    sums = random.normal(size=(n_attributes, 40))[chosen].sum(axis=1)
    matrix = sums + sums.std() / 2 * random.normal(size=sums.shape)
    return path, WordVectors(words[:900], matrix[:900].astype(np.float32))


def test_attributes_of_held_out_words_are_predicted_from_their_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    _, vectors = _synthetic(tmp_path)
    report = evaluate(vectors, tmp_path, ["attributes"], only=["s"], resamples=50)
    scores = {score.metric: score for score in report.scores}
    assert scores["map"].value >= 0.9
    assert scores["map-random"].value < 0.25
    assert scores["map-prior"].value < 0.25
    assert (scores["map"].n_items, 160 < scores["map"].n_covered < 200) == (200, True)


def test_attributes_of_tested_words_change_only_their_own_score(tmp_path: Path) -> None:
    path, vectors = _synthetic(tmp_path, 300, 10)
    task = Attributes(min_words=3)
    items = task.read(path)
    lookup = Lookup(vectors)
    changed = replace(items, labels=((0,),) * 10 + items.labels[10:])
    before, after = (task.answer(lookup, given).values["map"] for given in (items, changed))
    np.testing.assert_array_equal(before[10:], after[10:])
    assert (before[:10] != after[:10]).any()
    tested, others = ({word for (word,) in part} for part in (items.texts, items.more))
    assert not tested & others


def test_wordnet_is_a_dataset_where_it_is_installed(
    wordnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(wordnet))
    assert Attributes().find(tmp_path) == [wordnet]
    with pytest.raises(DatasetError):  # too few words
        Attributes().read(wordnet)


@pytest.mark.parametrize("settings", [{"kind": "senses"}, {"min_words": 0}, {"max_words": 1}])
def test_settings_of_attributes_are_checked(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Attributes(**settings)  # type: ignore[arg-type]
