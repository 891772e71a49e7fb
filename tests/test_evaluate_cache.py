"""What is kept of an evaluation: the same answers the second time, others for whatever decides them, never a pickle."""

from __future__ import annotations

import dataclasses
import html
import inspect
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stillvec import Vocabulary, WordVectors, save
from stillvec.errors import DeprecatedName, UsageError
from stillvec.evaluation import TASKS, Evaluation, evaluate
from stillvec.evaluation.answer_cache import AnswerCache, code_identity, digest_files
from stillvec.evaluation.intervals import Estimate, Resampling
from stillvec.evaluation.report_tables import build_tables
from stillvec.evaluation.similarity import Similarity
from stillvec.evaluation.tasks import Answers, CostlyTask, Items, select_tasks, split_tasks
from stillvec.formats.request import digest_vectors
from stillvec.heads.lookup import Lookup

WORDS = ["cat", "dog", "ice", "snow", "fire", "sat"]


def vectors(seed: int = 0, words: list[str] = WORDS) -> WordVectors:
    return WordVectors(Vocabulary(words), np.random.default_rng(seed).standard_normal((len(words), 4)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data" / "similarity").mkdir(parents=True)
    (tmp_path / "data/similarity/pets.tsv").write_text("cat\tdog\t9\ncat\tfire\t1\nice\tsnow\t8\nsat\tdog\t4\n")
    (tmp_path / "data/similarity/cold.tsv").write_text("ice\tsnow\t9\nice\tfire\t1\nsnow\tsat\t3\n")
    return tmp_path / "data"


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whose answers were computed, one entry each."""
    events: list[str] = []
    answer = Similarity.answer

    def counting(self: Similarity, lookup: Lookup, items: Items) -> Answers:
        events.append(lookup.oov)
        return answer(self, lookup, items)

    monkeypatch.setattr(Similarity, "answer", counting)
    return events


def test_a_second_evaluation_computes_nothing_and_is_the_same(data: Path, tmp_path: Path, answered: list[str]) -> None:
    sets = {"a": vectors(0), "b": vectors(1)}
    first = evaluate(sets, data, cache=tmp_path / "kept", resamples=20)
    assert len(answered) == 4
    assert evaluate(sets, data, cache=tmp_path / "kept", resamples=20) == first
    assert len(answered) == 4
    assert evaluate(sets, data, resamples=20) == first  # without a cache all is computed
    assert len(answered) == 8


def test_other_statistics_are_made_of_the_kept_answers(data: Path, tmp_path: Path, answered: list[str]) -> None:
    evaluate(vectors(), data, cache=tmp_path / "kept", resamples=20)
    again = evaluate(vectors(), data, cache=tmp_path / "kept", resamples=50, seed=3)
    assert len(answered) == 2
    assert again == evaluate(vectors(), data, resamples=50, seed=3)


def test_whatever_decides_the_answers_decides_their_name(data: Path, tmp_path: Path, answered: list[str]) -> None:
    kept = tmp_path / "kept"
    evaluate(vectors(), data, cache=kept, resamples=5)
    matrix = np.array(vectors().matrix)
    matrix[3, 2] += 1e-6
    counted = WordVectors(Vocabulary(WORDS, [6, 5, 4, 3, 2, 1]), vectors().matrix)
    for other in (WordVectors(vectors().vocabulary, matrix), vectors(0, WORDS[::-1]), counted):
        answered.clear()
        evaluate(other, data, cache=kept, resamples=5)
        assert len(answered) == 2
    answered.clear()
    evaluate(vectors(), data, cache=kept, resamples=5, oov="zero")
    assert answered == ["zero"] * 2
    answered.clear()
    with (data / "similarity/pets.tsv").open("a") as stream:
        stream.write("ice\tcat\t2\n")
    assert evaluate(vectors(), data, cache=kept, resamples=5).scores[1].n_items == 5
    assert len(answered) == 1  # the other file is as it was


def test_other_code_has_other_answers(
    data: Path, tmp_path: Path, answered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(vectors(), data, cache=tmp_path / "kept", resamples=5)
    monkeypatch.setattr("stillvec.evaluation.answer_cache.code_identity", lambda: "another version")
    evaluate(vectors(), data, cache=tmp_path / "kept", resamples=5)
    assert len(answered) == 4


def test_a_broken_file_of_the_cache_is_rewritten(data: Path, tmp_path: Path, answered: list[str]) -> None:
    kept = tmp_path / "kept"
    first = evaluate(vectors(), data, cache=kept, resamples=5)
    files = [*kept.iterdir()]
    assert sorted(file.suffix for file in files) == [".json", ".npz", ".npz"]
    for broken in (b"", b"PK\x03\x04 not a whole archive", b"{}"):
        for file in files:
            file.write_bytes(broken)
        assert evaluate(vectors(), data, cache=kept, resamples=5) == first
    assert len(answered) == 8
    with np.load(next(file for file in files if file.suffix == ".npz"), allow_pickle=False) as held:
        assert sorted(held.files) == ["covered", "values:spearman"]


def test_a_cache_that_cannot_be_written_is_reported_and_the_work_continues(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with warnings.catch_warnings(record=True) as output:
        warnings.simplefilter("always")
        assert evaluate(vectors(), data, cache=tmp_path / "file" / "kept", resamples=5).scores
    assert any("cannot write" in str(each.message) for each in output)


def test_a_dataset_next_to_a_broken_file_is_read_again_and_named_again(data: Path, tmp_path: Path) -> None:
    (data / "similarity/broken.tsv").write_text("cat\tdog\n")
    for _ in range(2):
        assert "broken.tsv:1:" in evaluate(vectors(), data, cache=tmp_path / "kept", resamples=5).errors[0]


def test_the_digest_is_of_all_rows_however_many_blocks_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32)
    words = [f"w{i}" for i in range(200)]
    monkeypatch.setattr("stillvec.formats.request._CHUNK_BYTES", 1024)
    whole = digest_vectors(WordVectors(words, matrix))
    assert digest_vectors(WordVectors(words, np.asfortranarray(matrix))) == whole
    for row in (0, 31, 32, 199):
        other = matrix.copy()
        other[row, 7] = 0
        assert digest_vectors(WordVectors(words, other)) != whole
    assert digest_vectors(WordVectors(words, matrix.astype(np.float64))) != whole


def test_all_parts_of_a_dataset_are_in_its_digest(tmp_path: Path) -> None:
    for name in ("sst.test.txt", "sst.train.txt", "other.txt"):
        (tmp_path / name).write_text(name)
    before = digest_files(tmp_path / "sst.test.txt")
    (tmp_path / "other.txt").write_text("changed")
    assert digest_files(tmp_path / "sst.test.txt") == before
    (tmp_path / "sst.train.txt").write_text("changed")
    assert digest_files(tmp_path / "sst.test.txt") != before


def test_answers_that_no_array_holds_are_not_kept(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    cache.put({"a": 1}, Answers(np.ones(1, bool), {"m": np.array([{}], object)}))
    assert cache.get({"a": 1}) is None
    assert [*tmp_path.iterdir()] == []


@dataclass(frozen=True)
class Slow(CostlyTask):
    """A task that trains, as far as one can see."""

    seeds: int = 2

    def find(self, folder: Path) -> list[Path]:
        return [folder / "similarity" / "pets.tsv"]

    def answer_steps(self, lookup: Lookup, items: Items) -> Generator[float, None, Answers]:
        yield 0.5
        if self.seeds < 1:
            raise UsageError("no seeds")
        return Similarity().answer(lookup, items)

    def read(self, path: Path) -> Items:
        return Similarity().read(path)

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        return Similarity().score(items, answers, chosen, resampling)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS._entries, "slow", f"{__name__}:Slow")


def test_a_costly_task_runs_when_it_is_named_or_all_are_wanted(slow: None, data: Path) -> None:
    tasks = ["similarity", "slow"]
    assert {s.task for s in evaluate(vectors(), data, tasks, resamples=5).scores} == {"similarity", "slow"}
    report = evaluate(vectors(), data, resamples=5)
    assert {s.task for s in report.scores} == {"similarity"}
    assert "slow" in report.left_out
    report = evaluate(vectors(), data, costly=True, only=["pets"], resamples=5)
    assert {s.task for s in report.scores} == {"similarity", "slow"}
    assert report.left_out == ()


def test_a_costly_task_tells_how_far_it_is(slow: None, data: Path) -> None:
    work = Evaluation({"v": vectors()}, data, ["slow:seeds=3"], resamples=5)
    events = [*work.steps()]
    assert [(step.done, step.total) for step in events] == [(0, 1), (0, 1), (1, 1)]
    assert events[1].remark == "slow pets, v, 50%"
    assert events[1].part == (0.5, 1)  # so that the time that is left can be estimated
    assert work.report.scores[0].task == "slow"


def test_settings_stand_behind_their_task(slow: None) -> None:
    assert split_tasks("similarity, slow:seeds=3,quick=true,analogy") == [
        "similarity",
        "slow:seeds=3,quick=true",
        "analogy",
    ]
    chosen, left = select_tasks(["slow:seeds=3", "similarity"], quick=True)
    assert chosen == {"slow": Slow(seeds=3, quick=True), "similarity": Similarity()}
    assert left == {}
    for wrong, expected in (("similarity,seeds=3", "'seeds'"), ("slw", "did you mean 'slow'")):
        with pytest.raises(UsageError, match=expected):
            select_tasks(split_tasks(wrong))
    with pytest.raises(UsageError, match="given twice"):
        select_tasks(["slow", "slow:seeds=1"])
    with pytest.raises(UsageError, match="did you mean 'seeds'"):
        select_tasks(["slow:seed=1"])


def test_datasets_are_chosen_by_name(data: Path) -> None:
    assert {s.dataset for s in evaluate(vectors(), data, only=["cold"], resamples=5).scores} == {"cold"}
    with pytest.raises(UsageError, match="did you mean 'cold'"):
        evaluate(vectors(), data, only=["cld"])


@dataclass(frozen=True)
class Lengths:
    """Encodes a text by how long it is."""

    identity: str = "lengths"

    def encode(self, texts: Any) -> np.ndarray:
        return np.array([[len(text), 1.0] for text in texts])


def test_an_encoder_is_evaluated_on_sentences_with_the_vectors(data: Path, tmp_path: Path) -> None:
    (data / "sentences").mkdir()
    rows = ["cat dog,cat sat,4", "ice,snow fire ice snow,1", "dog,dog,5", "fire,fire cat,3"]
    (data / "sentences/sts.csv").write_text("\n".join(rows))
    for _ in range(2):
        report = evaluate(
            {"v": vectors()}, data, encoders={"lengths": Lengths()}, cache=tmp_path / "kept", resamples=20
        )
        mine = [s for s in report.scores if s.vectors == "lengths"]
        assert {(s.task, s.metric, s.n_covered) for s in mine} == {
            ("sentences", "spearman", 4),
            ("sentences", "pearson", 4),
        }
        assert {(each.task, each.a, each.b) for each in report.comparisons} == {("sentences", "v", "lengths")}
        assert report.names == ("v", "lengths")
    with pytest.raises(UsageError, match="Two sets are called 'v'"):
        evaluate({"v": vectors()}, data, encoders={"v": Lengths()})


def test_the_key_changes_with_any_source_file_of_a_checkout_and_with_the_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = code_identity.__wrapped__
    package = tmp_path / "src" / "stillvec"
    for name in ("registry.py", "lexicons/edge.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("1\n")
    installed = identity(package)
    (package / "lexicons/edge.py").write_text("2\n")
    assert identity(package) == installed  # an installed version does not change
    (tmp_path / "pyproject.toml").write_text("")
    before = identity(package)
    assert before != installed
    for name in ("registry.py", "lexicons/edge.py", "new.py"):
        (package / name).write_text("3\n")
        assert identity(package) != before
        before = identity(package)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99" if name == "scipy" else "1")
    assert identity(package) != before
    assert '"scipy": "99"' in identity(package)
    assert '"source"' in identity()


def test_evaluate_takes_what_a_user_gives(data: Path, tmp_path: Path) -> None:
    save(vectors(), tmp_path / "one")
    save(vectors(1), tmp_path / "two")
    report = evaluate(tmp_path / "one", data, "similarity", only="pets", resamples=5)
    assert [(score.vectors, score.dataset) for score in report.scores] == [("one", "pets")]
    assert evaluate([str(tmp_path / "one"), tmp_path / "two"], data, resamples=5).names == ("one", "two")
    mixed = evaluate({"here": vectors(), "there": tmp_path / "two"}, data, resamples=5)
    assert mixed.names == ("here", "there")
    assert "similarity: spearman x 100" in str(mixed)
    assert "here - there" in str(mixed)
    with pytest.warns(DeprecatedName, match="'oov'"):
        assert evaluate(vectors(), data, unknown="zero", resamples=5).scores[0].unknown == "zero"


def test_the_call_and_its_settings_are_the_same_list() -> None:
    call = inspect.signature(evaluate).parameters
    fields = {each.name: each.default for each in dataclasses.fields(Evaluation) if each.init}
    assert {*call} - {*fields} == {"unknown", "policies", "progress"}  # old names, and what decides no result
    assert {name: call[name].default for name in fields if name != "vectors"} == {
        name: default for name, default in fields.items() if name != "vectors"
    }
    assert all(f"{name}: " in (evaluate.__doc__ or "") for name in call)


def test_a_report_becomes_a_data_frame(data: Path) -> None:
    pandas = pytest.importorskip("pandas")
    report = evaluate(vectors(), data, resamples=5)
    frame = report.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["value"].tolist() == [score.value for score in report.scores]
    assert frame["low"].tolist() == [score.low for score in report.scores]
    assert frame["coverage"].tolist() == [score.n_covered / score.n_items for score in report.scores]


def test_a_report_is_shown_as_tables_at_the_prompt_and_in_notebooks(data: Path) -> None:
    sets = {"<b>": vectors(), "second": vectors()}
    report = evaluate(sets, data, resamples=5)
    assert repr(report) == str(report)
    assert "[" in str(report)
    page = report._repr_html_()
    assert "<th" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    cells = [str(cell).strip() for table in build_tables(report) for row in table.rows for cell in row]
    assert [cell for cell in cells if html.escape(cell) not in page] == []
