"""Training on kept contexts: the same seed gives the same bytes, stopped or not; rates fall, losses are watched."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_corpus import DOES, KIND, WHAT, WHERE, WHO, collect_statistics, counted, sentences
from tiny_teachers import tiny_teacher

from stillvec.errors import DeprecatedName, StillvecWarning, TrainingError, UsageError
from stillvec.learners import LEARNERS
from stillvec.learners import context_blocks as blocks_module
from stillvec.learners import training_loop as module
from stillvec.learners.context_blocks import ContextBlocks
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.training_loop import LossMonitor
from stillvec.registry import settings_from
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.training import checkpoint as checkpoint_module
from stillvec.training.checkpoint import Checkpoint, name_settings, open_checkpoint
from stillvec.training.optimizers import RowAdam
from stillvec.training.schedule import Schedule, TrainingProgress, divergence_error
from stillvec.vocabulary import Vocabulary

TEXTS = sentences(96)
CLOSED: dict[str, object] = {
    "epochs": 1,
    "batch": 4,
    "shared_negatives": 16,
    "whiten": True,
    "bias": True,
    "start": "closed",
}
WINDOWS: dict[str, object] = {
    **CLOSED,
    "dim": 8,
    "window": 2,
    "rate": 1e-3,
    "optimizer": "adam",
    "projection_rate": 0.0,
}
SETTINGS: dict[str, dict[str, object]] = {
    "x2static": {**CLOSED, "subsample": 1e-4},
    "x2static, as in the paper": {"settings": "gupta-jaggi-2021", "batch": 4, "subsample": 0.01},
    "attentive_skipgram": {**WINDOWS, "include_center": True},
    "attentive_skipgram, as in the paper": {"settings": "wang-2020", "min_length": 2, "batch": 4, "dim": 8},
    "context_to_vec": {**WINDOWS, "include_center": True},
    "context_to_vec, as in the paper": {"settings": "zheng-2022", "min_length": 2, "batch": 4, "dim": 8},
}
CollectedStatistics = dict[str, Statistics]


@pytest.fixture(scope="module")
def collected() -> CollectedStatistics:
    """Contexts with states of words, which serve every method."""
    teacher = tiny_teacher([*WHO, *DOES[:6], *WHAT[:6], *KIND, *WHERE])
    vocabulary = counted(TEXTS, keep=["zebra"])
    return collect_statistics({"it": LEARNERS["attentive_skipgram"]()}, teacher, vocabulary, TEXTS)["it"]


@pytest.fixture(params=[*SETTINGS])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shards_of_20(monkeypatch: pytest.MonkeyPatch) -> None:
    """97 sentences are 5 shards, and a checkpoint is written after each."""
    monkeypatch.setattr(blocks_module, "BLOCK_SENTENCES", 20)
    monkeypatch.setattr(checkpoint_module, "_EVERY", 0.0)


def made(name: str, **settings: object) -> TrainedLearner:
    kind: Any = LEARNERS[name.partition(",")[0]]
    learner = settings_from(kind, {**SETTINGS[name], **settings})
    assert isinstance(learner, TrainedLearner)
    return learner


def trained(
    learner: TrainedLearner, collected: CollectedStatistics, place: Path | None = None, *, resume: bool = False
) -> tuple[Result, list[TrainingProgress]]:
    steps = learner.steps(collected, place, resume=resume)
    seen = []
    while True:
        try:
            seen.append(next(steps))
        except StopIteration as end:
            return end.value, seen


def matrix(learner: TrainedLearner, collected: CollectedStatistics, *arguments: Any, **named: Any) -> np.ndarray:
    return np.array(trained(learner, collected, *arguments, **named)[0].vectors.matrix)


class Killed(BaseException):
    """As by a signal: nobody catches it."""


def stop_after(checkpoints: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, a run dies when it has written so many checkpoints."""
    written = [0]
    write = Checkpoint.write

    def once_more(self: Checkpoint, *arguments: Any) -> None:
        write(self, *arguments)
        written[0] += 1
        if written[0] == checkpoints:
            raise Killed

    monkeypatch.setattr(Checkpoint, "write", once_more)


def killed(
    learner: TrainedLearner, collected: CollectedStatistics, place: Path, after: int, *, resume: bool = False
) -> Path:
    """A run that dies after some shards; gives its checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        stop_after(after, patch)
        with pytest.raises(Killed):
            trained(learner, collected, place, resume=resume)
    (checkpoint,) = place.glob("training-*.safetensors")
    return checkpoint


# ---- the same from the same


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(name: str, collected: CollectedStatistics) -> None:
    one, two, other = (matrix(made(name, seed=seed), collected) for seed in (3, 3, 4))
    assert one.tobytes() == two.tobytes()
    assert not np.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("method", ["x2static", "attentive_skipgram", "context_to_vec"])
def test_another_seed_draws_other_negatives(method: str, collected: CollectedStatistics) -> None:
    """In one batch, from the same start, the order of sentences changes no more than the last digits."""
    seen = [
        trained(made(method, batch=1000, subsample=1.0, seed=seed), collected)[0].notes["loss"] for seed in (0, 1, 2)
    ]
    assert np.std(np.array(seen, float)) > 1e-3


def test_training_changes_the_start(name: str, collected: CollectedStatistics) -> None:
    assert not np.allclose(matrix(made(name, rate=0.01), collected), matrix(made(name, epochs=0), collected), atol=1e-4)


@pytest.fixture
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize("method", ["x2static", "attentive_skipgram", "context_to_vec"])
@pytest.mark.parametrize("shared", [512, 0])
def test_threads_do_not_change_the_bytes(method: str, shared: int) -> None:
    """Sums that several threads add to in any order would."""
    random = np.random.default_rng(0)
    lengths = random.integers(2, 30, 400)
    arrays = {
        "stored:words": np.minimum(random.zipf(1.3, lengths.sum()) - 1, 299).astype(np.int32),
        "stored:lengths": lengths.astype(np.int32),
        "stored:contexts": random.normal(size=(400, 48)).astype(np.float16),
        "stored:states": random.normal(size=(lengths.sum(), 48)).astype(np.float16),
        "stored:scale": np.array(1.0),
    }
    kept = {"contexts": Statistics(Vocabulary([f"w{n}" for n in range(300)]), arrays)}
    settings = {} if method == "x2static" else {"projection_rate": 0.1}
    learner = settings_from(LEARNERS[method], {"batch": 200, "shared_negatives": shared, "rate": 0.01, **settings})
    assert len({learner.finish(kept).vectors.matrix.tobytes() for _ in range(3)}) == 1


@pytest.mark.usefixtures("shards_of_20")
@pytest.mark.parametrize("after", [1, 4, 7])
def test_a_run_that_was_stopped_continues_to_the_same_bytes(
    name: str, after: int, collected: CollectedStatistics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = made(name, epochs=2, rate=0.01)
    whole, steps = trained(learner, collected)
    killed(learner, collected, tmp_path, after)
    training_result: list[int] = []
    once = module.train_block
    monkeypatch.setattr(module, "train_block", lambda *given: (training_result.append(given[3]), once(*given))[1])
    rest, later = trained(learner, collected, tmp_path, resume=True)
    assert training_result == [*range(after, 10)], "what was learnt is not learnt again"
    assert rest.vectors.matrix.tobytes() == whole.vectors.matrix.tobytes()
    assert rest.notes == whole.notes
    for key, array in whole.model.items():
        assert rest.model[key].tobytes() == array.tobytes(), key
    assert later[-1] == steps[-1]
    assert later[0].done > steps[0].done
    assert [*tmp_path.iterdir()] == [], "a checkpoint that has served is removed"


@pytest.mark.usefixtures("shards_of_20")
def test_a_run_can_be_stopped_twice(collected: CollectedStatistics, tmp_path: Path) -> None:
    learner = made("x2static", epochs=2, rate=0.01)
    killed(learner, collected, tmp_path, 3)
    killed(learner, collected, tmp_path, 3, resume=True)
    assert int(load_file(next(tmp_path.iterdir()))["done"]) == 6
    assert matrix(learner, collected, tmp_path, resume=True).tobytes() == matrix(learner, collected).tobytes()


@pytest.mark.usefixtures("shards_of_20")
def test_a_run_that_was_stopped_after_the_last_shard_only_finishes(
    collected: CollectedStatistics, tmp_path: Path
) -> None:
    learner = made("x2static", rate=0.01)
    killed(learner, collected, tmp_path, 5)
    finished, steps = trained(learner, collected, tmp_path, resume=True)
    assert steps == []
    assert finished.vectors.matrix.tobytes() == matrix(learner, collected).tobytes()
    assert "NaN" not in json.dumps(dict(finished.notes))


@pytest.mark.usefixtures("shards_of_20")
def test_without_resume_a_run_starts_again(collected: CollectedStatistics, tmp_path: Path) -> None:
    learner = made("x2static", rate=0.01)
    wanted = matrix(learner, collected)
    checkpoint = killed(learner, collected, tmp_path, 2)
    held = load_file(checkpoint)
    save_file({**held, "table": held["table"] + 1}, checkpoint)
    kept = checkpoint.read_bytes()
    assert not np.allclose(matrix(learner, collected, tmp_path, resume=True), wanted), "it is what is gone on from"
    checkpoint.write_bytes(kept)
    assert matrix(learner, collected, tmp_path).tobytes() == wanted.tobytes()
    assert not checkpoint.exists()


@pytest.mark.usefixtures("shards_of_20")
def test_a_checkpoint_of_other_settings_is_left_alone(collected: CollectedStatistics, tmp_path: Path) -> None:
    learner = made("x2static", rate=0.01)
    checkpoint = killed(learner, collected, tmp_path, 2)
    for other in (made("x2static", rate=0.02), made("x2static", epochs=3), made("attentive_skipgram")):
        assert matrix(other, collected, tmp_path, resume=True).tobytes() == matrix(other, collected).tobytes()
    assert [*tmp_path.iterdir()] == [checkpoint]


class _Model:
    def __init__(self, value: float) -> None:
        self.table = torch.full((2,), value)

    def tensors(self) -> dict[str, torch.Tensor]:
        return {"table": self.table}


def test_a_training_continued_with_other_threads_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.training.checkpoint._EVERY", 0.0)
    for earlier, now, warns in ((1, 2, True), (2, 2, False), (None, 2, False), (1, None, False)):
        Checkpoint(tmp_path / "c", threads=earlier).write(_Model(1.0), 3)
        model = _Model(0.0)
        with pytest.warns(StillvecWarning, match="threads") if warns else nullcontext():
            assert Checkpoint(tmp_path / "c", resume=True, threads=now).restore(model) == 3
        assert model.table.tolist() == [1.0, 1.0]


def test_every_setting_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    places = set()
    settings = {"a": 1, "b": 0.5}
    for given in (settings, {"a": 2, "b": 0.5}, {"a": 1, "b": 0.25}, {"a": 1, "c": 0.5}, {"b": 0.5, "a": 1}):
        checkpoint = open_checkpoint(tmp_path, given, resume=True)
        assert checkpoint is not None
        places.add(checkpoint.path)
    assert len(places) == 4
    assert open_checkpoint(None, settings, resume=True) is None


BROKEN: dict[str, Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]] = {
    "fewer words": lambda held: {**held, "table": held["table"][1:].contiguous()},
    "fewer dimensions": lambda held: {**held, "mean": held["mean"][:, 1:].contiguous()},
    "more": lambda held: {**held, "more": held["mean"].clone()},
    "less": lambda held: {key: held[key] for key in held if key != "square"},
    "how far it was": lambda held: {key: held[key] for key in held if key != "done"},
}


@pytest.mark.usefixtures("shards_of_20")
@pytest.mark.parametrize("case", [*BROKEN, "cut short", "no such format", "nothing", "one bit is another"])
def test_a_checkpoint_that_does_not_fit_is_refused_in_one_sentence(
    case: str, collected: CollectedStatistics, tmp_path: Path
) -> None:
    learner = made("x2static")
    checkpoint = killed(learner, collected, tmp_path, 2)
    content = checkpoint.read_bytes()
    broken = {"cut short": content[: len(content) // 2], "no such format": b"mine" * 99, "nothing": b""}
    broken["one bit is another"] = content[:-1] + bytes([content[-1] ^ 1])
    if case in BROKEN:
        save_file(BROKEN[case](load_file(checkpoint)), checkpoint)
    else:
        checkpoint.write_bytes(broken[case])
    changed = checkpoint.read_bytes()
    with pytest.raises(TrainingError) as caught:
        trained(learner, collected, tmp_path, resume=True)
    assert caught.value.code == ("other-checkpoint" if case in BROKEN else "unreadable-checkpoint")
    assert caught.value.path == str(checkpoint)
    assert checkpoint.read_bytes() == changed
    assert matrix(learner, collected, tmp_path).tobytes() == matrix(learner, collected).tobytes()


@pytest.mark.usefixtures("shards_of_20")
def test_a_checkpoint_that_cannot_be_written_is_reported_once_and_training_continues(
    collected: CollectedStatistics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def full(*_: object) -> None:
        tried.append(1)
        raise checkpoint_module.SafetensorError("Error while serializing: No space left on device")

    learner = made("x2static", rate=0.01)
    wanted = matrix(learner, collected)
    monkeypatch.setattr(checkpoint_module, "save_file", full)
    with pytest.warns(StillvecWarning, match="checkpoint.*No space left") as warned:
        got = matrix(learner, collected, tmp_path)
    assert got.tobytes() == wanted.tobytes()
    assert len(warned) == len(tried) == 1
    assert [*tmp_path.iterdir()] == []


@pytest.mark.usefixtures("shards_of_20")
def test_checkpoints_are_no_more_frequent_than_is_said(
    collected: CollectedStatistics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_module, "_EVERY", 3600.0)
    written: list[object] = []
    monkeypatch.setattr(checkpoint_module, "save_file", lambda *given: written.append(given))
    trained(made("x2static", epochs=2), collected, tmp_path)
    assert written == []


# ---- shards


@pytest.mark.usefixtures("shards_of_20")
def test_every_epoch_has_all_shards_in_an_order_of_its_own(
    collected: CollectedStatistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, list[int]]] = []

    read = ContextBlocks.read

    def watched(self: ContextBlocks, number: int, generator: Any = None) -> Any:
        shard = read(self, number, generator)
        if generator is not None:
            seen.append((number, shard.words.tolist()))
        return shard

    monkeypatch.setattr(ContextBlocks, "read", watched)
    orders = []
    for seed in (0, 1):
        seen.clear()
        trained(made("x2static", epochs=3, seed=seed), collected)
        orders.append([number for number, _ in seen])
        assert [sorted(orders[-1][at : at + 5]) for at in (0, 5, 10)] == [[0, 1, 2, 3, 4]] * 3
        for number in range(5):
            inside = [words for each, words in seen if each == number]
            assert len({tuple(words) for words in inside}) > 1, "the sentences of a shard are shuffled anew"
            assert len({tuple(sorted(words)) for words in inside}) == 1
    assert orders[0] != orders[1]
    assert orders[0][:5] != orders[0][5:10] or orders[0][5:10] != orders[0][10:]


def laid(lengths: list[int], scale: float = 1.0) -> Statistics:
    """Sentence s has the context s, and its words are 100 s, 100 s + 1, …, with states alike."""
    words = np.array([100 * s + n for s, length in enumerate(lengths) for n in range(length)], np.int32)
    arrays = {
        "stored:words": words,
        "stored:lengths": np.array(lengths, np.int32),
        "stored:contexts": np.repeat(np.arange(len(lengths), dtype=np.float16)[:, None], 3, 1),
        "stored:states": np.repeat(words.astype(np.float16)[:, None] / 128, 3, 1),
        "stored:scale": np.array(scale),
    }
    return Statistics(Vocabulary([str(n) for n in range(2000)]), arrays)


@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize("shuffled", [True, False])
def test_a_sentence_stays_whole_in_a_shard(shuffled: bool, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK_SENTENCES", 4)
    lengths = [2, 5, 1, 3, 7, 1, 4, 2, 6]
    blocks = ContextBlocks(laid(lengths, scale), torch.device("cpu"))
    seen = []
    for number in range(3):
        shard = blocks.read(number, np.random.default_rng(number) if shuffled else None)
        assert shard.states is not None
        first = 0
        for length, context in zip(shard.lengths.tolist(), shard.contexts, strict=True):
            sentence = int(context[0] / scale)
            seen.append(sentence)
            assert length == lengths[sentence]
            assert shard.words[first : first + length].tolist() == [100 * sentence + n for n in range(length)]
            wanted = shard.words[first : first + length, None].half() / 128 * scale
            assert torch.equal(shard.states[first : first + length].float(), wanted.float().expand(-1, 3))
            first += length
        assert first == len(shard.words)
    assert sorted(seen) == [*range(9)]
    assert (seen == sorted(seen)) is not shuffled
    assert [len(shard.lengths) for shard in blocks] == [4, 4, 1]


def test_counts_are_those_of_the_contexts(collected: CollectedStatistics) -> None:
    kept = collected["contexts"]
    wanted = [sum(row == word for word in kept["stored:words"]) for row in range(len(kept.vocabulary))]
    assert ContextBlocks(kept, torch.device("cpu")).count_words().tolist() == wanted
    assert wanted[kept.vocabulary.index["zebra"]] == 1, "read alone"


# ---- the rate


def test_the_rate_falls_in_a_line_to_a_hundredth_or_stays() -> None:
    falls, stays = Schedule(rate=0.5), Schedule(rate=0.5, decay="constant")
    assert [falls.lr_at(share) for share in (0.0, 0.25, 0.5, 0.98)] == pytest.approx([0.5, 0.375, 0.25, 0.01])
    assert [falls.lr_at(share) for share in (0.99, 0.995, 1.0)] == pytest.approx([0.005] * 3)
    assert [stays.lr_at(share) for share in (0.0, 0.5, 1.0)] == [0.5] * 3


@pytest.mark.usefixtures("shards_of_20")
@pytest.mark.parametrize("method", ["x2static", "attentive_skipgram", "context_to_vec"])
def test_the_rates_of_a_run_are_those_of_its_course(
    method: str, collected: CollectedStatistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[float] = []
    step = RowAdam.update

    def watched(self: RowAdam, rows: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        used.append(rate)
        step(self, rows, gradient, rate)

    monkeypatch.setattr(RowAdam, "update", watched)
    trained(made(method, epochs=2, rate=0.01, subsample=1.0), collected)
    # each epoch has 97 sentences in 5 shards: four of 20 in 5 batches, and one of 17 in 5, which may come anywhere
    assert used.pop() == 0.0, "a look back, which changes nothing"
    assert len(used) == 50
    assert used[0] == pytest.approx(0.01)
    assert used == sorted(set(used), reverse=True), "it falls with every batch"
    assert used[::5] == pytest.approx([0.01 * (1 - n / 10) for n in range(10)])
    used.clear()
    trained(made(method, epochs=2, rate=0.01, decay="constant"), collected)
    assert used.pop() == 0.0
    assert set(used) == {0.01}


@pytest.mark.parametrize("method", ["x2static", "attentive_skipgram", "context_to_vec"])
def test_a_single_step_that_leads_nowhere_is_seen(
    method: str, collected: CollectedStatistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK_SENTENCES", 1000)
    with pytest.raises(TrainingError, match=r"diverged: .* from .* at a learning rate of 1e\+06"):
        trained(made(method, rate=1e6, batch=1000), collected)


# ---- the loss


@pytest.mark.usefixtures("shards_of_20")
def test_the_loss_decreases_and_progress_is_reported(name: str, collected: CollectedStatistics) -> None:
    rate = 0.5 if "wang" in str(SETTINGS[name].get("settings")) else 0.02
    shared = 0 if "paper" in name else 64
    learner = made(name, epochs=12, rate=rate, start="random", subsample=1.0, shared_negatives=shared)
    finished, steps = trained(learner, collected)
    first, last = (np.mean([step.loss for step in some]) for some in (steps[:5], steps[-5:]))
    assert last < 0.97 * first
    assert finished.notes["loss"] == steps[-1].loss
    assert {step.total for step in steps} == {12 * 97}
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert done[-1] == 12 * 97


@pytest.mark.usefixtures("shards_of_20")
def test_divergence_is_reported_at_once_and_leaves_no_checkpoint(
    name: str, collected: CollectedStatistics, tmp_path: Path
) -> None:
    learner = made(name, epochs=50, rate=1e4)
    training_result: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        once = module.train_block
        patch.setattr(module, "train_block", lambda *given: (training_result.append(given[3]), once(*given))[1])
        with pytest.raises(TrainingError, match=r"diverged: .* of 10000; lower it \(rate=1000\)") as caught:
            trained(learner, collected, tmp_path)
    assert "\n" not in str(caught.value)
    assert len(training_result) <= 2, "of 250 shards"
    assert [*tmp_path.iterdir()] == []


@pytest.mark.usefixtures("shards_of_20")
def test_a_run_that_diverges_late_leaves_no_checkpoint_to_go_on_from(
    collected: CollectedStatistics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = module.train_block

    def diverging(*given: Any) -> Any:
        if given[3] == 3:
            raise divergence_error(0.01)
        return once(*given)

    learner = made("x2static", rate=0.01)
    killed(learner, collected, tmp_path, 2)
    monkeypatch.setattr(module, "train_block", diverging)
    with pytest.raises(TrainingError, match="diverged"):
        trained(learner, collected, tmp_path, resume=True)
    assert [*tmp_path.iterdir()] == []


def test_divergence_in_the_first_shard_is_seen(name: str, collected: CollectedStatistics) -> None:
    """Its first loss must not be one that is spoilt already."""
    with pytest.raises(TrainingError, match="diverged"):
        trained(made(name, rate=1e4), collected)


def test_vectors_that_are_no_numbers_are_not_given(
    collected: CollectedStatistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A last step that leads beyond all numbers: no loss has seen it."""
    learner = made("x2static", batch=1000)
    assert len(trained(learner, collected)[1]) == 1
    monkeypatch.setattr(RowAdam, "update", lambda self, rows, gradient, rate: self.table.fill_(math.inf))
    with pytest.raises(TrainingError, match="diverged"):
        trained(learner, collected)


def losses(*values: float) -> Iterator[float]:
    watch = LossMonitor(0.1)
    for value in values:
        watch.add(torch.tensor(value * 5), 5)
        watch.check()
        yield watch.loss


def test_a_fluctuating_loss_is_not_divergence() -> None:
    assert [*losses(2.0, 1.0, 4.0, 6.9, 0.5)] == pytest.approx([2.0, 1.0, 4.0, 6.9, 0.5])
    for last in (7.1, math.nan, math.inf):
        with pytest.raises(TrainingError, match=r"from 2 to (7\.1|nan|inf) at .* 0\.1; .*rate=0\.01"):
            [*losses(2.0, last)]


def test_a_look_is_the_mean_since_the_last(collected: CollectedStatistics) -> None:
    watch = LossMonitor(1e-3)
    watch.check()
    assert math.isnan(watch.loss)
    watch.add(torch.tensor(6.0), 2)
    watch.add(torch.tensor(2.0), 2)
    watch.check()
    assert watch.loss == 2.0
    watch.add(torch.tensor(3.0), 3)
    watch.check()
    assert watch.loss == 1.0


# ---- edges


def test_without_an_epoch_the_start_is_the_result(name: str, collected: CollectedStatistics, tmp_path: Path) -> None:
    finished, steps = trained(made(name, epochs=0), collected, tmp_path)
    assert steps == []
    assert np.isfinite(finished.vectors.matrix).all()
    assert "NaN" not in json.dumps(dict(finished.notes))
    assert [*tmp_path.iterdir()] == []


def test_contexts_of_unknown_words_only_can_be_trained_on(name: str) -> None:
    kept = laid([3, 2])
    kept = replace(kept, arrays={**kept.arrays, "stored:words": np.full(5, -1, np.int32)})
    assert np.isfinite(matrix(made(name), {"contexts": kept})).all()


WRONG: dict[str, tuple[str, dict[str, object], str]] = {
    "context": ("x2static", {"context": "page"}, "'page'"),
    "start": ("x2static", {"start": "foo"}, "'foo'"),
    "start of windows": ("attentive_skipgram", {"start": "zero"}, "'zero'"),
    "pool": ("context_to_vec", {"pool": "foo"}, "'foo'"),
    "squash": ("context_to_vec", {"activation": "relu"}, "'relu'"),
    "optimizer": ("attentive_skipgram", {"optimizer": "rmsprop"}, "'rmsprop'"),
    "decay": ("x2static", {"decay": "cosine"}, "'cosine'"),
    "settings": ("x2static", {"settings": "nobody"}, "gupta-jaggi-2021"),
    "settings of another": ("context_to_vec", {"settings": "wang-2020"}, "zheng-2022"),
    "rate": ("x2static", {"rate": "0"}, "rate"),
    "rate that is none": ("x2static", {"rate": "nan"}, "rate"),
    "rate without end": ("attentive_skipgram", {"rate": "inf"}, "rate"),
    "epochs": ("x2static", {"epochs": "-1"}, "epochs"),
    "seed": ("x2static", {"seed": "-1"}, "seed"),
    "batch": ("x2static", {"batch": "0"}, "batch"),
    "negatives": ("x2static", {"negatives": "0"}, "negatives"),
    "negatives of windows": ("attentive_skipgram", {"negatives": "0"}, "negatives"),
    "window": ("attentive_skipgram", {"window": "0"}, "window"),
    "shared": ("attentive_skipgram", {"shared_negatives": "-1"}, "shared_negatives"),
    "subsampling": ("context_to_vec", {"subsample": "-1"}, "subsample"),
    "clip": ("attentive_skipgram", {"clip": "-1"}, "clip"),
    "ridge": ("x2static", {"ridge": "-1"}, "ridge"),
    "ridge of windows": ("context_to_vec", {"ridge": "-0.1"}, "ridge"),
    "epochs in the stream": ("attentive_skipgram", {"stream": "true", "epochs": "3"}, "stream"),
    "no epoch in the stream": ("x2static", {"stream": "true", "epochs": "0"}, "stream"),
}


@pytest.mark.parametrize("case", [*WRONG])
def test_a_setting_that_is_invalid_is_refused_in_one_sentence(case: str) -> None:
    method, given, named = WRONG[case]
    kind: Any = LEARNERS[method]
    with pytest.raises(UsageError) as caught:
        settings_from(kind, given).specs()
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_old_names_of_settings_are_accepted_and_name_the_same_checkpoint() -> None:
    kind: Any = LEARNERS["context_to_vec"]
    old = {"own": False, "around": 0.3, "squash": "tanh", "reward": 0.5, "shared": 8, "shortest": 3, "longest": 9}
    with pytest.warns(DeprecatedName):
        learner = settings_from(kind, old)
    assert (learner.include_center, learner.context_weight, learner.max_length) == (False, 0.3, 9)
    assert old.items() <= name_settings(learner).items()


def test_a_papers_settings_give_way_to_what_is_given() -> None:
    kind: Any = LEARNERS["x2static"]
    learner = settings_from(kind, {"settings": "gupta-jaggi-2021", "batch": "64"})
    assert (learner.batch, learner.shared_negatives, learner.whiten, learner.start) == (64, 0, False, "random")
