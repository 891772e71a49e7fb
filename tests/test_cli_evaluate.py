"""The verbs evaluate and datasets as a user calls them, and the encoders that sentences are judged with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from stillvec import Vocabulary, WordVectors, save
from stillvec.cli import main
from stillvec.cli.evaluate_command import legend, show_report
from stillvec.errors import UsageError
from stillvec.evaluation import Report, Score
from stillvec.evaluation.candidates import TeacherEncoder
from stillvec.evaluation.datasets import KNOWN, find_known
from stillvec.evaluation.report_tables import shorten_names
from stillvec.evaluation.text_baselines import parse_baseline

WORDS = [f"w{i}" for i in range(40)]


def vectors(seed: int = 0, words: list[str] = WORDS) -> WordVectors:
    return WordVectors(Vocabulary(words), np.random.default_rng(seed).standard_normal((len(words), 6)))


@pytest.fixture
def places(tmp_path: Path) -> tuple[list[str], str]:
    """Three sets of vectors, of which the last knows fewer words, and a folder of data."""
    good = vectors()
    sets = [good, vectors(5), WordVectors(good.vocabulary, good.matrix + 0.1).subset(WORDS[:30])]
    paths = [str(tmp_path / name) for name in ("good", "bad", "fewer")]
    for path, each in zip(paths, sets, strict=True):
        save(each, path)
    generator = np.random.default_rng(1)
    for name in ("similarity/one.tsv", "similarity/two.tsv"):
        pairs = [(f"w{a}", f"w{b}") for a, b in generator.integers(0, 40, (120, 2))]
        rows = [f"{a}\t{b}\t{good.similarity(a, b) + 0.1 * generator.standard_normal():.4f}" for a, b in pairs]
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("\n".join(rows))
    (tmp_path / "data/sentences").mkdir()
    (tmp_path / "data/sentences/sts.csv").write_text("w1 w2,w3,4\nw4,w5 w6,2\nw7,w7,5\nw8 w9,w10,1\n")
    return paths, str(tmp_path / "data")


def test_three_sets_are_compared_in_a_hundred_columns(
    places: tuple[list[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, data = places
    (tmp_path / "lexicon.txt").write_text("w1 w2 w3\nw4 w5 w6\n")
    lexicon = str(tmp_path / "lexicon.txt")
    assert main(["evaluate", *paths, "--data", data, "--lexicon", lexicon, "--compare-oov", "--overlap"]) == 0
    printed = capsys.readouterr().out
    for wanted in (
        "differences x 100 [95%] on the same items",
        "Sets: 1 good, 2 bad, 3 fewer.",
        "lexicon pairs",
        "on common words",
        "neighbours: share of the 10 nearest",
        "OOV words",
    ):
        assert wanted in printed, wanted
    assert any(line.startswith("  one ") and line.count("*") == 2 for line in printed.splitlines())
    assert max(map(len, printed.splitlines())) <= 100


def test_many_sets_are_rows_and_the_best_is_held_against_each_other(
    places: tuple[list[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, data = places
    save(vectors(9), tmp_path / "fourth")
    call = ["evaluate", *paths, str(tmp_path / "fourth"), "--data", data, "--compare-oov", "--overlap"]
    assert main(call) == 0
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 100
    against = printed.index(next(line for line in printed if "the best by mean" in line))
    assert printed[against].startswith("1 good")
    others = [line.split()[0] for line in printed[against + 2 : against + 5]]
    assert others == ["2", "3", "4"]
    first = [line for line in printed[:against] if line.startswith("   1 good")]
    assert ["*" in line for line in first] == [True, True, False]  # own, common, sentences
    assert all("±" in line for line in first)
    assert "Covered: 100%" not in " ".join(printed[:6])  # the third set knows fewer
    assert legend({"similarity", "sentences"}) in printed


def test_two_dozen_sets_with_long_names_stay_inside_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"a-very-long-name-of-a-folder-that-nobody-wants-to-read-{at}" for at in range(24)]
    scores = [
        Score(name, "similarity", f"dataset-number-{n}", "spearman", 0.4 + at / 100, 0.3, 0.6, 99, 90 + n, "skip")
        for at, name in enumerate(names)
        for n in range(9)
    ]
    show_report(Report(tuple(scores)))
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 100
    rows = [line for line in printed if line.startswith("  24 …")]
    assert len(rows) > 1  # blocks of columns
    assert sum(line.count("*63.0 ±15.0") for line in rows) == 9
    assert not any("*" in line for line in printed if line.startswith("  23 …"))
    assert sum("dataset-number-8 99%" in " ".join(line.split()) for line in printed) <= 1


def test_texts_and_words_are_known_by_different_rules() -> None:
    assert "at least one word" in legend({"tagging"})
    assert "every word" not in legend({"tagging"})
    assert legend({"analogy"}) == "An item counts as covered if every word in it has a vector."
    assert "every word" in legend({"analogy", "tagging"})
    assert "at least one word" in legend({"analogy", "tagging"})


def test_the_second_call_prints_the_same_from_the_cache_and_no_cache_keeps_nothing(
    places: tuple[list[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, data = places
    call = ["evaluate", *paths, "--data", data]
    assert main([*call, "--no-cache"]) == 0
    first = capsys.readouterr().out
    assert not (tmp_path / "cache").exists()
    assert main(call) == 0
    assert capsys.readouterr().out == first
    monkeypatch.setattr("stillvec.evaluation.similarity.Similarity.answer", None)  # whoever asks now fails
    assert main(call) == 0
    assert capsys.readouterr().out == first


def test_a_page_is_written_with_the_evaluation(places: tuple[list[str], str], tmp_path: Path) -> None:
    paths, data = places
    page = tmp_path / "report.html"
    assert main(["evaluate", *paths, "--data", data, "--report", str(page), "--quiet"]) == 0
    assert "<html" in page.read_text("utf-8")
    assert main(["evaluate", *paths, "--data", data, "--report", str(tmp_path / "report.doc")]) == 2
    assert not (tmp_path / "report.doc").exists()


@pytest.mark.parametrize(
    ("extra", "expected", "status"),
    [
        (["--only", "onne"], "did you mean 'one'", 2),
        (["--lexicon", "nowhere.txt"], "nowhere.txt", 1),  # the call is right, its input is not
        (["--baseline", "word2vec:x"], "'word2vec'", 2),
        (["--baseline", "model2vec:nowhere"], "'model2vec:nowhere'", 2),
        (["--teacher", "./nowhere"], "nowhere", 1),
        (["--tasks", "similarity:sed=3"], "setting 'sed'", 2),
    ],
)
def test_a_wrong_call_is_one_sentence(
    places: tuple[list[str], str], extra: list[str], expected: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, data = places
    assert main(["evaluate", paths[0], "--data", data, "--quiet", *extra]) == status
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_a_teacher_is_the_ceiling_on_sentences(
    places: tuple[list[str], str], model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, data = places
    call = ["evaluate", paths[0], "--data", data, "--tasks", "sentences", "--teacher", model, "--json", "-"]
    assert main(call) == 0
    ours, teacher = json.loads(capsys.readouterr().out)
    assert teacher["vectors"] == "teacher"
    assert [score["metric"] for score in teacher["scores"] if score["words"] == "own"] == ["spearman", "pearson"]
    assert {each["b"] for each in ours["comparisons"]} == {"teacher"}


def test_a_teacher_encodes_as_its_model_does_text_by_text(model: str) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    texts = ["the cat sat on the mat", "ice", "a much longer sentence about the snow and the fire", ""]
    ours = TeacherEncoder(model, "cpu").encode(texts)
    network, tokenizer = AutoModel.from_pretrained(model).eval(), AutoTokenizer.from_pretrained(model)
    for text, row in zip(texts[:3], ours, strict=False):
        with torch.inference_mode():
            states = network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]  # (T, D)
        np.testing.assert_allclose(row, states.mean(0).numpy(), atol=1e-5)
    assert not ours[3].any()


def test_a_rival_encodes_with_its_own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class StaticModel:
        @classmethod
        def from_pretrained(cls, path: str) -> StaticModel:
            assert path == str(tmp_path)
            return cls()

        def encode(self, texts: list[str]) -> Any:
            return [[len(text), 0.0] for text in texts]

    package = ModuleType("model2vec")
    package.__spec__ = __import__("importlib.machinery").machinery.ModuleSpec("model2vec", None)
    package.StaticModel = StaticModel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "model2vec", package)
    (tmp_path / "config.json").write_text("{}")
    encoder = parse_baseline(f"model2vec:{tmp_path}")
    assert encoder.encode(["ab", "c"]).tolist() == [[2, 0], [1, 0]]
    before = encoder.identity
    (tmp_path / "config.json").write_text('{"other": 1}')
    assert parse_baseline(f"model2vec:{tmp_path}").identity != before


def test_a_real_folder_of_model2vec_is_encoded_as_the_mean_of_its_words(tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "a": 1, "b": 2, "c": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    rows = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    model2vec.StaticModel(rows, tokenizer, normalize=False).save_pretrained(tmp_path / "static")
    found = parse_baseline(f"model2vec:{tmp_path / 'static'}").encode(["a b", "c"])
    assert found == pytest.approx(np.stack([rows[1:3].mean(axis=0), rows[3]]), abs=1e-6)


def test_a_baseline_that_is_not_installed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install model2vec"):
        parse_baseline(f"model2vec:{tmp_path}")


def test_long_names_keep_their_ends_and_stay_apart() -> None:
    assert shorten_names(["a", "b/c"]) == {"a": "a", "b/c": "b/c"}
    long = ["x" * 30 + "/aggregate", "y" * 30 + "/aggregate"]
    short = shorten_names(long)
    assert len({*short.values()}) == 2
    assert all(len(each) <= 22 for each in short.values())


def test_datasets_lists_what_is_there_and_where_the_rest_is_from(
    places: tuple[list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, data = places
    (Path(data) / "similarity/simlex999.tsv").write_text("a\tb\t1\nc\td\t2\n")
    assert main(["datasets", "--data", data, "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    mine = {each["name"]: each for each in listed["found"] if each["folder"] == data}
    assert {name: each["items"] for name, each in mine.items()} == {"one": 120, "two": 120, "simlex999": 2, "sts": 4}
    assert mine["simlex999"]["source"] == "Hill et al. 2015"
    missing = {each["name"] for each in listed["missing"]}
    assert "simlex999" not in missing
    assert "men3000" in missing
    assert main(["datasets", "--data", data]) == 0
    printed = capsys.readouterr().out
    assert f"in {data}" in printed
    assert "not found" in printed


def test_datasets_names_a_broken_file_and_lists_the_others(
    places: tuple[list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, data = places
    (Path(data) / "similarity/broken.tsv").write_text("a\tb\n")
    assert main(["datasets", "--data", data]) == 1
    captured = capsys.readouterr()
    assert "broken.tsv:1:" in captured.err
    assert "one" in captured.out


def test_every_known_dataset_is_listed_and_found_by_its_names() -> None:
    assert len({(each.name, each.task) for each in KNOWN}) == len(KNOWN)
    for each in KNOWN:
        assert all((each.items, each.source, each.terms, each.published)), each.name
        assert all(find_known(name, each.task) == each for name in (f"{each.name}.test", *each.names))
    assert find_known("ws353-similarity") != find_known("ws353")
    assert find_known("newcomer") is None


def test_what_is_known_agrees_with_the_real_files(data_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", "--data", str(data_folder), "--json", "-"]) == 0
    for each in (one for one in json.loads(capsys.readouterr().out)["found"] if one["items"] is not None):
        known = find_known(each["name"])
        assert known is not None, each["name"]
        if each["task"] in ("similarity", "analogy") and known.task == each["task"]:
            assert f"{each['items']:,} " in f"{known.items} "
