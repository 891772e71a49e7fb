"""Files of items: forms that are read, files that are broken, folders, sentences, JSON and the command."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import stillvec
from stillvec import Vocabulary, WordVectors
from stillvec.cli import main
from stillvec.errors import DatasetError, MissingExtra, UsageError
from stillvec.evaluation import TASKS, Report, Score, evaluate
from stillvec.evaluation.sentences import Sentences
from stillvec.evaluation.similarity import Similarity
from stillvec.files import create_bytes
from stillvec.files.path_names import unique_names

WORDS = ["the", "cat", "dog", "sat", "ran", "ice", "snow", "fire"]
CONTRACT = {"task", "dataset", "metric", "value", "low", "high", "n_items", "n_covered", "unknown"}


def vectors(seed: int = 0, counts: bool = False) -> WordVectors:
    matrix = np.random.default_rng(seed).standard_normal((len(WORDS), 5))
    return WordVectors(Vocabulary(WORDS, [800, 40, 30, 20, 10, 5, 3, 2] if counts else None), matrix)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny folder of data with every task that there is."""
    data = tmp_path / "data"
    for name, content in {
        "similarity/pets.tsv": "cat\tdog\t9\ncat\tfire\t1\nice\tsnow\t8\nsat\tran\t4\nice\tquark\t2",
        "similarity/weather.csv": "word1,word2,score\nice,fire,1\nice,snow,9\nsnow,fire,2\n",
        "analogy/small.txt": ": verbs\ncat sat dog ran\nice snow cat dog\n",
        "sentences/sts.test.csv": "the cat sat,the dog sat,4.5\n"
        '"ice, snow",fire,1\nthe cat ran,the fire,0.5\nzzz,the,1\n',
        "sentences/sts.train.csv": "the cat,the dog,3\nice,fire,1\n",
    }.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(content, "utf-8")
    return data


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tabs.tsv", b"ice\tsnow\t9\ncat\tdog\t8.5"),
        ("windows.tsv", b"\xef\xbb\xbfice\tsnow\t9\r\ncat\tdog\t8.5\r\n"),
        ("spaces.txt", b"# a comment\n\nice snow 9\ncat  dog   8.5\n"),
        ("header.tsv", b"Word 1\tWord 2\tHuman (mean)\nice\tsnow\t9\ncat\tdog\t8.5\n"),
        ("indexed.csv", b",word1,word2,similarity\n0,ice,snow,9\n1,cat,dog,8.5\n"),
    ],
)
def test_a_similarity_file_may_have_tabs_spaces_commas_a_header(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    items = Similarity().read(tmp_path / name)
    assert items.texts == (("ice", "snow"), ("cat", "dog"))
    assert items.gold.tolist() == [9, 8.5]


@pytest.mark.parametrize(
    ("task", "name", "content", "line"),
    [
        ("similarity", "a.tsv", b"ice\tsnow\t9\ncat\tdog\n", 2),
        ("similarity", "a.tsv", b"ice\tsnow\t9\n\n# c\ncat\tdog\tmuch\n", 4),
        ("similarity", "a.tsv", b"ice\tsnow\tnan\n", 1),
        ("similarity", "a.tsv", b"ice\tsnow\t9\ncaf\xe9\tdog\t1\n", 2),
        ("similarity", "a.tsv", b"ice\tsnow\t9\ncat\t\t1\n", 2),
        ("similarity", "a.tsv", b"", 1),
        ("analogy", "a.txt", b": s\na b c d\na b c\n", 3),
        ("analogy", "a.txt", b": s\n", 1),
        ("analogy", "a.csv", b",type,word1,word2,word3,target\n0,X,a,b,c,d\n1,X,a,b,c\n", 3),
        ("analogy", "a.csv", b"0,X,a,b,c,d\n", 1),
        ("sentences", "a.csv", b'"one,\ntwo",three,4\nfour,five\n', 3),
        ("sentences", "a.csv", b"one,two,3\nthree,four,much\n", 2),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, task: str, name: str, content: bytes, line: int) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        TASKS[task]().read(tmp_path / name)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / name}:{line}: ")
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_files_of_items_are_read_and_named_without_their_suffix(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "similarity").mkdir()
    with create_bytes(tmp_path / "similarity" / f"pets.csv{suffix}") as stream:
        stream.write(b"word1,word2,score\ncat,dog,9\ncat,fire,1\nice,snow,8\n")
    scores = evaluate(vectors(), tmp_path).scores
    assert {(score.dataset, score.n_items) for score in scores} == {("pets", 3)}


def test_the_other_files_are_scored_when_one_is_broken(folder: Path) -> None:
    (folder / "similarity" / "broken.tsv").write_text("cat\tdog\t1\nice\n")
    report = evaluate(vectors(), folder, ["similarity"], resamples=10)
    assert [score.dataset for score in report.scores] == ["pets", "weather"]
    assert len(report.errors) == 1
    assert "broken.tsv:2:" in report.errors[0]


def test_a_folder_in_which_every_file_is_broken_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "similarity").mkdir()
    (tmp_path / "similarity" / "broken.tsv").write_text("a\tb\t1\nice\n")
    with pytest.raises(DatasetError, match=r"broken\.tsv:2:"):
        evaluate(vectors(), tmp_path)


def test_a_new_file_is_evaluated_without_a_change_of_code(folder: Path) -> None:
    before = {score.dataset for score in evaluate(vectors(), folder, resamples=10).scores}
    (folder / "similarity" / "newcomer.txt").write_text("cat dog 3\nice fire 1\nice snow 2\n")
    (folder / "similarity" / "README.txt").write_text("Not a dataset.\n")
    after = {score.dataset for score in evaluate(vectors(), folder, resamples=10).scores}
    assert after - before == {"newcomer"}


def test_a_wrong_call_is_an_error(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'similarity'"):
        evaluate(vectors(), folder, ["similarty"])
    with pytest.raises(UsageError, match="did you mean 'skip'"):
        evaluate(vectors(), folder, oov="skp")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="No such file or folder"):
        evaluate(vectors(), tmp_path / "nowhere")
    with pytest.raises(UsageError, match="at least one set"):
        evaluate({}, folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError) as caught:
        evaluate(vectors(), tmp_path / "empty")
    assert (caught.value.code, caught.value.path) == ("no-data", str(tmp_path / "empty"))


def test_the_environment_names_the_folder_of_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLVEC_DATA", str(folder))
    assert {score.dataset for score in evaluate(vectors(), tasks=["similarity"]).scores} == {
        "pets",
        "weather",
    }


def test_without_a_folder_the_datasets_of_gensim_are_used_and_gensim_is_not_imported() -> None:
    pytest.importorskip("gensim")
    code = (
        "import os, sys; os.environ.pop('STILLVEC_DATA', None)\n"
        "from stillvec import WordVectors; from stillvec.evaluation import evaluate\n"
        "vectors = WordVectors(['cat', 'tiger', 'old', 'new', 'king', 'queen'], [[i, 1] for i in range(6)])\n"
        "report = evaluate(vectors, resamples=10)\n"
        "assert 'gensim' not in sys.modules and 'torch' not in sys.modules\n"
        "print([*dict.fromkeys((score.dataset, score.n_items) for score in report.scores)])"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == str([("simlex999", 999), ("wordsim353", 353), ("questions-words", 19544)])


def test_a_missing_gensim_is_reported_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STILLVEC_DATA", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"stillvec\[packaged\]"):
        evaluate(vectors())


def test_sentences_are_compared_by_their_mean_vectors(folder: Path) -> None:
    own = vectors(counts=True)
    scores = {score.metric: score for score in evaluate(own, folder, ["sentences"], resamples=50).scores}
    left, right, gold = (
        ["the cat sat", "ice, snow", "the cat ran"],
        ["the dog sat", "fire", "the fire"],
        [4.5, 1, 0.5],
    )

    def cosines(each: WordVectors) -> np.ndarray:
        x, y = each.encode(left), each.encode(right)
        return (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)

    weights = 1e-3 / (1e-3 + own.vocabulary.frequencies())
    weighted = WordVectors(own.vocabulary, own.matrix * weights[:, None])
    assert scores["spearman"].value == pytest.approx(stats.spearmanr(cosines(own), gold).statistic)
    assert scores["pearson"].value == pytest.approx(stats.pearsonr(cosines(own), gold).statistic, abs=1e-5)
    assert scores["spearman-sif"].value == pytest.approx(stats.spearmanr(cosines(weighted), gold).statistic)
    items = Sentences().read(folder / "sentences" / "sts.test.csv")
    sif = Sentences().answer(stillvec.heads.lookup.Lookup(own), items).values["spearman-sif"]  # type: ignore[attr-defined]
    np.testing.assert_allclose(sif[:3], cosines(weighted), atol=1e-5)
    assert (scores["spearman"].n_items, scores["spearman"].n_covered) == (4, 3)


def test_sif_needs_counts_and_only_the_test_part_is_scored(folder: Path) -> None:
    scores = evaluate(vectors(), folder, ["sentences"], resamples=10).scores
    assert [(score.dataset, score.metric) for score in scores] == [
        ("sts.test", "spearman"),
        ("sts.test", "pearson"),
    ]
    (folder / "sentences" / "sts.test.csv").unlink()
    assert {s.dataset for s in evaluate(vectors(), folder, ["sentences"], resamples=10).scores} == {"sts.train"}


def test_sentences_without_known_words_follow_the_policy(folder: Path) -> None:
    for policy in ("mean", "zero"):
        score = evaluate(vectors(), folder, ["sentences"], oov=policy, resamples=10).scores[0]
        assert (score.n_items, score.n_covered, score.unknown) == (4, 3, policy)
        assert math.isfinite(score.value)


def test_the_json_has_the_form_of_the_contract(folder: Path) -> None:
    one = evaluate(vectors(), folder, resamples=10).to_json()
    assert isinstance(one, dict)
    assert set(one) == {"vectors", "scores", "means"}
    assert all(set(score) - {"words", "details"} == CONTRACT for score in one["scores"])
    two = evaluate({"a": vectors(0), "b": vectors(1)}, folder, resamples=10).to_json()
    assert isinstance(two, list)
    assert [each["vectors"] for each in two] == ["a", "b"]
    assert json.loads(json.dumps(two, allow_nan=False)) == two


def test_what_is_not_defined_is_null_in_json(tmp_path: Path) -> None:
    (tmp_path / "similarity").mkdir()
    (tmp_path / "similarity" / "foreign.tsv").write_text("x\ty\t1\ny\tz\t2\n")
    report = evaluate(vectors(), tmp_path)
    assert math.isnan(report.scores[0].value)
    assert report.to_json()["scores"][0]["value"] is None  # type: ignore[call-overload]


def test_a_report_gives_the_scores_of_one_set_by_name() -> None:
    scores = tuple(Score(n, "similarity", "d", "spearman", 0.5, 0.4, 0.6, 9, 9, "skip") for n in ("one", "two"))
    assert Report(scores).by("two") == (scores[1],)
    with pytest.raises(UsageError, match="did you mean 'two'"):
        Report(scores).by("tow")


def test_the_package_has_the_function_before_and_after_its_module_is_loaded(folder: Path) -> None:
    import stillvec.evaluation

    assert stillvec.evaluate(vectors(), folder, ["analogy"]).scores[0].task == "analogy"


def written(path: Path, some: WordVectors) -> str:
    """A file in the text form of word2vec."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (f"{word} {' '.join(map(str, row))}" for word, row in zip(some.words, some.matrix, strict=True))
    path.write_text("\n".join([f"{len(some)} {some.dim}", *rows]) + "\n")
    return str(path)


def test_the_command_prints_a_table_and_writes_the_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [vectors(0), vectors(1), vectors(2).subset(word for word in WORDS if word != "sat")]
    paths = [written(tmp_path / f"set{i}" / "v.txt", each) for i, each in enumerate(sets)]
    out = tmp_path / "scores.json"
    assert main(["evaluate", *paths, "--data", str(folder), "--json", str(out), "--oov", "zero"]) == 0
    printed = capsys.readouterr().out
    assert [each["vectors"] for each in json.loads(out.read_text())] == [
        "set0/v.txt",
        "set1/v.txt",
        "set2/v.txt",
    ]
    for wanted in ("pets", "weather", "mean of 2", "on common words", "sts.test pearson", "small", " 80%"):
        assert wanted in printed, wanted
    assert printed.count("zero vector") == 1
    assert max(map(len, printed.splitlines())) <= 100


def test_sets_that_know_the_same_words_are_not_listed_twice(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [written(tmp_path / f"set{i}" / "v.txt", vectors(i)) for i in range(2)]
    assert main(["evaluate", *paths, "--data", str(folder)]) == 0
    assert "common" not in capsys.readouterr().out


def test_the_command_prints_only_json_for_a_dash_and_fails_after_a_broken_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "v.txt", vectors())
    (folder / "similarity" / "broken.tsv").write_text("cat\tdog\t1\nice\n")
    assert main(["evaluate", path, "--data", str(folder), "--tasks", "similarity", "--json", "-"]) == 1
    captured = capsys.readouterr()
    assert {score["dataset"] for score in json.loads(captured.out)["scores"]} == {"pets", "weather"}
    assert "broken.tsv:2:" in captured.err


def test_the_command_refuses_a_task_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["evaluate", written(tmp_path / "v.txt", vectors()), "--tasks", "similarty"])
    assert caught.value.code == 2


def test_names_take_as_many_folders_as_tell_them_apart(tmp_path: Path) -> None:
    assert unique_names(["/x/a/v.txt", "/x/b.txt"]) == ["v.txt", "b.txt"]
    assert unique_names(["/x/a/v.txt", "/x/b/v.txt"]) == ["a/v.txt", "b/v.txt"]
    with pytest.raises(UsageError, match="twice"):
        unique_names(["/x/v.txt", "/x/v.txt"])


def test_the_real_datasets_are_all_read(data_folder: Path) -> None:
    words = [
        "car",
        "automobile",
        "journey",
        "voyage",
        "boy",
        "lad",
        "king",
        "queen",
        "man",
        "woman",
        "the",
        "a",
        "is",
    ]
    own = WordVectors(Vocabulary(words), np.random.default_rng(0).standard_normal((len(words), 6)))
    report = evaluate(own, data_folder, resamples=10)
    assert report.errors == ()
    n_items = {score.dataset: score.n_items for score in report.scores}
    wanted = {
        "rg65": 65,
        "ws353": 353,
        "simlex999": 999,
        "simverb3500": 3500,
        "rareword": 2034,
        "men3000": 3000,
    }
    assert wanted.items() <= n_items.items()
    assert {"google": 19544, "msr": 8000, "stsb.test": 1379}.items() <= n_items.items()
    assert {"semeval2012": 3218, "ap": 402, "battig": 5231, "esslli2008-verbs": 45}.items() <= n_items.items()
    assert "stsb.train" not in n_items
    google = next(score for score in report.scores if score.dataset == "google")
    assert len(google.details) == 14
    assert sum(detail.n_items for detail in google.details) == 19544
