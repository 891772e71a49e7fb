"""`source=`: which datasets are tested, what is trained on, and that nothing of the tested dataset is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillvec import WordVectors, evaluate
from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.answer_cache import digest_data
from stillvec.evaluation.classification import Classification
from stillvec.evaluation.tagging import Tagging
from stillvec.heads.lookup import Lookup

NAMES, PLACES, OTHERS = ("anna", "ben", "carla"), ("rome", "oslo", "lima"), ("went", "to", "and", "saw")


def _vectors() -> WordVectors:
    matrix = np.random.default_rng(1).standard_normal((10, 8)).astype(np.float32) * 0.3
    matrix[:3, 0] += 3
    matrix[3:6, 1] += 3
    return WordVectors([*NAMES, *PLACES, *OTHERS], matrix)


def _tagged(path: Path, number: int, types: tuple[str, str] = ("PER", "LOC")) -> Path:
    generator = np.random.default_rng(number)
    blocks = []
    for _ in range(number):
        rows = [(generator.choice(NAMES), f"B-{types[0]}"), ("went", "O"), (generator.choice(PLACES), f"B-{types[1]}")]
        blocks.append("\n".join(f"{word}\t{tag}" for word, tag in rows))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(blocks) + "\n")
    return path


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tagging"
    _tagged(folder / "wiki.tsv", 40)
    for part, number in (("train", 30), ("dev", 12), ("test", 20)):
        _tagged(folder / f"news.{part}.tsv", number)
    _tagged(folder / "tweets.tsv", 25, ("PER", "PER"))
    _tagged(folder / "species.tsv", 20, ("PER", "ANIMAL"))
    return tmp_path


def test_the_others_with_its_labels_are_tested(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    assert [path.name for path in Tagging(source="wiki").find(folder)] == ["news.test.tsv", "tweets.tsv"]
    assert [path.name for path in Tagging(source="NEWS").find(folder)] == ["tweets.tsv", "wiki.tsv"]
    assert len(Tagging().find(folder)) == 4
    _tagged(folder / "tagging" / "sea.test.tsv", 9)  # without training sentences
    assert [path.name for path in Tagging(source="wiki").find(folder)] == [
        "news.test.tsv",
        "sea.test.tsv",
        "tweets.tsv",
    ]
    assert len(Tagging(source="wiki").read(folder / "tagging" / "sea.test.tsv")) == 9
    with pytest.raises(UsageError, match="wiki") as caught:
        Tagging(source="sports").find(folder)
    assert caught.value.code == "unknown-name"
    with pytest.raises(DatasetError, match="PER") as refused:
        Tagging(source="tweets").find(folder)
    assert refused.value.code == "no-data"


def test_training_and_development_are_those_of_the_source(tmp_path: Path) -> None:
    folder = _folder(tmp_path) / "tagging"
    items = Tagging(source="news").read(folder / "wiki.tsv")
    assert len(items) == 40  # a file without parts is tested whole
    (split,) = items.rounds
    assert (len(split.train), len(split.dev), len(split.test)) == (30, 12, 40)
    items = Tagging(source="wiki").read(folder / "news.test.tsv")
    (split,) = items.rounds
    assert (len(split.train), len(split.dev), len(split.test)) == (32, 8, 20)
    assert {*items.texts} <= {tuple(words) for words in items.all_texts}


def test_the_tags_of_the_tested_file_change_nothing(tmp_path: Path) -> None:
    folder = _folder(tmp_path) / "tagging"
    task = Tagging(source="news", epochs=4, seeds=1)
    before = task.answer(Lookup(_vectors()), task.read(folder / "wiki.tsv")).values["f1"]
    assert before[:, 0].sum() / before[:, 2].sum() > 0.9  # correct of gold
    text = (folder / "wiki.tsv").read_text()
    (folder / "wiki.tsv").write_text(text.replace("PER", "x").replace("LOC", "PER").replace("x", "LOC"))
    after = task.answer(Lookup(_vectors()), task.read(folder / "wiki.tsv")).values["f1"]
    np.testing.assert_array_equal(after[:, 1], before[:, 1])  # as many spans, and all of the other type
    assert after[:, 0].sum() < before[:, 0].sum()


def test_the_cache_notices_a_changed_source(tmp_path: Path) -> None:
    folder = _folder(tmp_path) / "tagging"
    task, plain = Tagging(source="wiki"), Tagging()
    before, alone = digest_data(task, folder / "news.test.tsv"), digest_data(plain, folder / "news.test.tsv")
    _tagged(folder / "wiki.tsv", 41)
    assert digest_data(task, folder / "news.test.tsv") != before
    assert digest_data(plain, folder / "news.test.tsv") == alone


def test_texts_are_classified_by_what_another_dataset_taught(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    (tmp_path / "classification").mkdir()
    for name, number in (("films", 60), ("books.train", 12), ("books.test", 20), ("other", 20)):
        labels = generator.integers(0, 2, number) + (name == "other")
        lines = [f"{label} {generator.choice(PLACES if label else NAMES)} went" for label in labels]
        (tmp_path / "classification" / f"{name}.txt").write_text("\n".join(lines) + "\n")
    call = {"tasks": "classification:source=films,model=linear+knn", "resamples": 10}
    report = evaluate({"static": _vectors()}, tmp_path, **call)
    assert {score.dataset for score in report.scores} == {"books.test"}
    scores = {score.metric: score.value for score in report.scores}
    assert scores["accuracy-linear"] == scores["accuracy-knn"] == 1
    items = Classification(source="films").read(tmp_path / "classification" / "books.test.txt")
    assert len(items.all_texts) == 80
