"""One scale over all phases: it never goes back, its total is what is read, its estimate can be believed."""

from __future__ import annotations

import io
import itertools
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny_corpus import sentences

import stillvec
from stillvec.cli import main
from stillvec.encoding import BatchBudget
from stillvec.pipeline import pass_checkpoint
from stillvec.progress import LinePrinter, Phase, Progress, ProgressBar, Timeline, describe_progress
from stillvec.progress.display import NotebookBar, show_progress

TEXTS = sentences(240)
METHODS = "auto,x2static,x2static:context=paragraph,token_table,decontextualized"
WEIGHTS = {"loading": 2.0, "counting": 3.0, "reading": 90.0, "computing": 5.0}


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(" ".join(TEXTS[at : at + 4]) for at in range(0, len(TEXTS), 4)), "utf-8")
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchBudget, "for_teacher", lambda *_: BatchBudget(256, 32))


def reading(done: int, total: int, phase: Phase = Phase.CORPUS) -> Progress:
    return Progress(phase, done, total, "tokens", 0.0)


def is_ascending(values: list[float]) -> bool:
    return all(one <= other for one, other in itertools.pairwise(values))


def is_of_reading(event: Progress) -> bool:
    return isinstance(event.stage, Phase) and event.stage.activity in ("reading", "templates") and not event.note


# ---- the scale


def test_the_fraction_never_decreases_though_the_total_grows() -> None:
    timeline = Timeline(WEIGHTS, Clock())
    events = [Progress(Phase.LOADING, 0, None, "", 0.0), Progress(Phase.COUNTING, 9, None, "words", 0.0)]
    events += [reading(10, 100), reading(50, 100), reading(52, 200), reading(120, 200, Phase.TEMPLATES)]
    events += [Progress(Phase.COMPUTING, 0, None, "", 0.0, work=(0.0, 2.0)), Progress(Phase.WRITING, 0, None, "", 0.0)]
    events += [Progress(Phase.COMPUTING, 0, None, "", 0.0, work=(1.0, 2.0)), Progress(Phase.WRITING, 0, None, "", 0.0)]
    fractions = [timeline(event).fraction or 0.0 for event in events]
    assert is_ascending(fractions)
    assert fractions[:3] == pytest.approx([0.0, 0.02, 0.14])
    assert fractions[-1] == pytest.approx(0.975)
    assert timeline.finish().fraction == 1.0


def test_an_activity_that_comes_late_or_is_unknown_does_not_move_the_bar_back() -> None:
    timeline = Timeline(WEIGHTS, Clock())
    assert timeline(reading(50, 100)).fraction == pytest.approx(0.5)
    assert timeline(Progress(Phase.LOADING, 0, None, "", 0.0)).fraction == pytest.approx(0.5)
    assert timeline(Progress("something else", 1, 2, "", 0.0)).fraction == pytest.approx(0.5)


@pytest.mark.parametrize("noise", [0.0, 0.8])
def test_the_estimate_is_steady_and_right(noise: float) -> None:
    """Batches of 100 tokens, each in a second or, with noise, in 0.2 to 1.8."""
    clock, random = Clock(), np.random.default_rng(0)
    timeline = Timeline({"reading": 1.0}, clock)
    took = random.uniform(1 - noise, 1 + noise, 600)
    estimates = []
    for number, seconds in enumerate(took):
        estimates.append(timeline(reading(100 * number, 60_000)).remaining)
        clock.now += seconds
    truth = np.cumsum(took[::-1])[::-1]
    known = [(estimate, left) for estimate, left in zip(estimates, truth, strict=True) if estimate is not None]
    assert len(known) > 590
    assert all(estimate > 0 for estimate, _ in known)
    late = np.array(known[20:])
    assert np.abs(late[:, 0] / late[:, 1] - 1)[:-5].max() < (0.3 if noise else 0.01)
    jumps = np.abs(np.diff(late[:, 0])) / late[:-1, 0]
    assert np.median(jumps) < 0.02
    assert jumps[:-20].max() < (0.1 if noise else 0.06)


def test_the_estimate_follows_a_machine_that_becomes_slower() -> None:
    clock = Clock()
    timeline = Timeline({"reading": 1.0}, clock)
    for number in range(1, 401):
        clock.now += 1.0 if number < 200 else 4.0
        event = timeline(reading(number, 1000))
    assert event.remaining == pytest.approx(2400, rel=0.05)


def test_what_an_earlier_run_has_read_is_not_counted_as_speed() -> None:
    clock = Clock()
    timeline = Timeline({"reading": 1.0}, clock)
    for number in range(10):
        event = timeline(reading(9000 + number, 10_000))
        clock.now += 1.0
    assert event.fraction == pytest.approx(0.9, abs=0.01)
    assert event.remaining == pytest.approx(991)


def test_what_comes_after_reading_is_part_of_the_estimate() -> None:
    clock = Clock()
    timeline = Timeline({"reading": 90.0, "computing": 10.0}, clock)
    for number in range(46):
        event = timeline(reading(number, 90))
        clock.now += 1.0
    assert event.remaining == pytest.approx(90 - 45 + 10)
    assert timeline(Progress(Phase.COMPUTING, 0, None, "", 0.0, work=(0.0, 1.0))).remaining is None


def test_the_last_event_says_where_the_time_went() -> None:
    clock = Clock()
    timeline = Timeline(WEIGHTS, clock)
    phases = [Phase.LOADING, Phase.COUNTING, Phase.CORPUS, Phase.TEMPLATES, Phase.COMPUTING, Phase.WRITING]
    for seconds, phase in enumerate(phases, 1):
        timeline(Progress(phase, 0, None, "", 0.0))
        clock.now += seconds
    last = timeline.finish()
    assert last.stage == Phase.FINISHED
    assert last.seconds == 21.0
    assert last.remark == "loading 1.0, counting 2.0, reading 3.0, templates 4.0, computing 5.0, writing 6.0"


# ---- real runs


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("contexts", "workers"), [(None, 0), (3, 0), (None, 2), (3, 2)])
def test_the_total_is_what_the_teacher_reads(
    corpus: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contexts: int | None, workers: int
) -> None:
    monkeypatch.setattr(BatchBudget, "for_teacher", lambda *_: BatchBudget(256, 32, workers))
    events: list[Progress] = []
    given: dict[str, Any] = {"teacher": model, "min_count": 1, "contexts": contexts, "include_words": ["zebra"]}
    results = stillvec.distill_all(
        corpus, **given, method=METHODS, context_cache=tmp_path / "cache", device="cpu", progress=events.append
    )
    n_tokens = next(iter(results.values())).provenance["read"]["pieces"]
    read = [event for event in events if is_of_reading(event)]
    assert read[-1].done == read[-1].total == n_tokens
    assert is_ascending([event.done for event in read])
    assert len({event.done for event in read}) > 20, "it moves with each batch"
    known = [event.total for event in read if event.total is not None]
    assert known[0] == pytest.approx(n_tokens, rel=0.1)
    assert {event.stage for event in read} == {
        *(Phase.CORPUS, Phase.PARAGRAPHS, Phase.ISOLATED, Phase.TOKENS, Phase.TEMPLATES)
    }
    assert all(isinstance(event.stage, Phase) for event in events)
    assert is_ascending([event.fraction or 0.0 for event in events])
    assert [event.fraction for event in events if event.fraction == 1.0] == [1.0]
    assert events[-1].stage == Phase.FINISHED


def test_the_total_of_a_small_text_is_exact_from_the_first_batch_on(corpus: Path, model: str) -> None:
    events: list[Progress] = []
    given: dict[str, Any] = {"teacher": model, "min_count": 1, "device": "cpu", "include_words": ["zebra"]}
    stillvec.distill(corpus, **given, progress=events.append)
    read = [event for event in events if is_of_reading(event) and event.total is not None]
    assert {event.total for event in read} == {read[-1].done}


@pytest.mark.usefixtures("small")
def test_a_resumed_run_starts_at_what_was_read(
    corpus: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pass_checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(pass_checkpoint, "_TIMES", 0)
    given: dict[str, Any] = {"teacher": model, "min_count": 1, "device": "cpu", "out": tmp_path / "out"}
    events: list[Progress] = []

    def interrupt(event: Progress) -> None:
        events.append(event)
        if is_of_reading(event) and event.done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stillvec.distill(corpus, **given, progress=interrupt)
    n_read, total = events[-1].done, events[-1].total
    events.clear()
    stillvec.distill(corpus, **given, resume=True, progress=events.append)
    read = [event for event in events if is_of_reading(event)]
    assert read[0].done == n_read
    assert next(event.total for event in read if event.total) == pytest.approx(total, rel=0.05)
    assert read[-1].done == read[-1].total
    assert is_ascending([event.fraction or 0.0 for event in events])


def test_training_has_one_scale_too(corpus: Path) -> None:
    events: list[Progress] = []
    stillvec.train_all(corpus, method="glove:epochs=2,sent2vec:epochs=1", min_count=1, progress=events.append)
    assert {event.stage for event in events} == {Phase.COUNTING, Phase.ENCODING, Phase.TRAINING, Phase.FINISHED}
    assert {event.subject for event in events if event.stage == Phase.TRAINING} == {"glove", "sent2vec"}
    assert is_ascending([event.fraction or 0.0 for event in events])


def test_plain_text_is_counted_with_a_percentage(corpus: Path) -> None:
    events: list[Progress] = []
    stillvec.train(corpus, method="glove:epochs=1", min_count=1, progress=events.append)
    counted = [event for event in events if event.stage == Phase.COUNTING]
    assert counted[-1].work is not None
    assert counted[-1].work[0] / counted[-1].work[1] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("verb", ["distill", "train"])
def test_the_command_line_says_where_the_time_went(
    verb: str, corpus: Path, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method = ["--teacher", model, "--device", "cpu"] if verb == "distill" else ["--method", "glove:epochs=1"]
    assert main([verb, str(corpus), *method, "--min-count", "1", "--out", str(tmp_path / "out"), "--quiet"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Took ")]
    total, _, parts = line.removeprefix("Took ").removesuffix(" s.").partition(" s: ")
    seconds = {name: float(value) for name, value in (part.split() for part in parts.split(", "))}
    wanted = {
        "distill": ["imports", "loading", "counting", "reading", "templates", "computing", "writing"],
        "train": ["imports", "counting", "encoding", "training", "writing"],
    }
    assert [*seconds] == wanted[verb]
    assert sum(seconds.values()) == pytest.approx(float(total), abs=0.5)


# ---- how it is shown


def test_a_description_says_how_much_and_how_long() -> None:
    assert "1,000k of 1M" in describe_progress(reading(999_999, 1_000_000), short=True)
    event = Progress(Phase.CORPUS, 250, 1000, "tokens", 5.0, "loss 2.1", fraction=0.3, remaining=15.0)
    assert describe_progress(event) == "30%, 250 of 1,000 tokens, 50 tokens/s, about 15 s left, loss 2.1"
    assert describe_progress(Progress(Phase.LOADING, 0, None, "", 0.0, fraction=0.0)) == ""
    assert " 0 s" not in describe_progress(Progress(Phase.CORPUS, 999, 1000, "tokens", 5.0, remaining=0.2))
    assert "100%" not in describe_progress(Progress(Phase.CORPUS, 999, 1000, "tokens", 5.0, fraction=0.999))


def test_a_log_has_a_line_per_phase_and_one_every_ten_seconds() -> None:
    clock, lines = Clock(), list[str]()
    printer = LinePrinter(lines.append, clock)
    printer(Progress(Phase.LOADING, 0, None, "", 0.0))
    printer(Progress(Phase.CORPUS, 0, None, "", 0.0, note="a note"))
    for number in range(100):
        printer(reading(number, 200))
        clock.now += 1.0
    printer(reading(100, 200, Phase.TEMPLATES))
    printer(Progress(Phase.FINISHED, 0, None, "", 0.0))
    assert lines[:2] == ["loading the teacher", "a note"]
    assert [line.partition(": ")[0] for line in lines[2:]] == ["reading the corpus"] * 11 + [
        "reading words in templates"
    ]
    assert "99 of 200 tokens" in lines[-2]


class FakeDisplay(ModuleType):
    """Stands for IPython.display."""

    def __init__(self) -> None:
        super().__init__("IPython.display")
        self.shown: list[str] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert display_id
        self.update(data, raw=raw)
        return SimpleNamespace(update=self.update)

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        assert data.keys() == {"text/html", "text/plain"}
        self.shown.append(data["text/html"])


def test_a_notebook_gets_a_bar_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    display = FakeDisplay()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with show_progress(True) as listener:
        assert isinstance(listener, NotebookBar)
        listener(Progress(Phase.CORPUS, 5, 10, "tokens", 1.0, "<b>", fraction=0.5, remaining=7.0))
        listener(Progress(Phase.CORPUS, 6, 10, "tokens", 1.0, fraction=0.6))
        listener(Progress(Phase.FINISHED, 0, None, "", 9.0, "reading 9.0", fraction=1.0))
    assert len(display.shown) == 2, "not with each batch"
    assert 'value="0.5000"' in display.shown[0]
    assert "about 7 s left" in display.shown[0]
    assert "&lt;b&gt;" in display.shown[0]
    assert 'value="1.0000"' in display.shown[1]
    assert "finished: 9.0 s (reading 9.0)" in display.shown[1]
    del shell.kernel  # IPython in a terminal
    with show_progress(True) as listener:
        assert not isinstance(listener, NotebookBar)


def test_true_prints_lines_where_there_is_no_terminal(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stillvec.train(corpus, method="glove:epochs=1", min_count=1, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "counting words"
    assert any(line.startswith("training (glove)") for line in lines)
    stillvec.train(corpus, method="glove:epochs=1", min_count=1)
    assert capsys.readouterr().err == ""


def test_the_bar_of_a_terminal_counts_down_and_keeps_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    drawn = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", drawn)
    with ProgressBar() as bar:
        bar(Progress(Phase.CORPUS, 0, None, "", 0.0, note="contexts will take 1 MB"))
        bar(Progress(Phase.CORPUS, 12_500, 1_250_000, "tokens", 1.0, fraction=0.5, remaining=100.4))
    text = drawn.getvalue()
    assert "contexts will take 1 MB" in text
    assert "50%, about 100 s left, 12.5k of 1.25M tokens" in text
    assert ", ," not in text


def test_evaluation_shows_its_progress(tmp_path: Path) -> None:
    folder = tmp_path / "similarity"
    folder.mkdir()
    (folder / "pairs.tsv").write_text("ice\tsnow\t9\nice\tfire\t1\nsnow\tfire\t2\n", "utf-8")
    vectors = stillvec.WordVectors(["ice", "snow", "fire"], np.eye(3, 4))
    events: list[Progress] = []
    stillvec.evaluate(vectors, tmp_path, resamples=0, progress=events.append)
    assert {event.stage for event in events} == {Phase.EVALUATING}
    assert is_ascending([event.fraction or 0.0 for event in events])


def test_a_recipe_says_which_step_it_is_at(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tables = '[train]\ncorpus = "corpus.txt"\nmethod = "glove:epochs=1"\nmin_count = 1\nout = "glove"\n'
    Path("recipe.toml").write_text(f'{tables}[refine]\nin = "glove"\nsteps = ["center"]\nout = "refined"\n', "utf-8")
    assert main(["run", "recipe.toml"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1 of 2, train: counting words"
    assert lines[-1].startswith("2 of 2, refine: center")
