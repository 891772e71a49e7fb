"""The store of contexts: what goes in comes out, and what goes wrong leaves nothing that looks whole."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_corpus import DOES, KIND, WHAT, WHERE, WHO, counted, make_pass, run_pass, sentences
from tiny_teachers import tiny_teacher

from stillvec.encoding import BatchBudget, TextChunk, context_store
from stillvec.encoding.context_store import Contexts, ContextWriter, StoreLocation, bytes_needed
from stillvec.errors import FormatError, StillvecError, TeacherError
from stillvec.files.temporary_names import name_machine
from stillvec.learners import LEARNERS, EncodingPass
from stillvec.learners.accumulators import TextSource
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary

TEXTS = sentences(64)
KNOWN = [*WHO, *DOES, *WHAT, *KIND, *WHERE, "the", "in", "near", "a", "by"]


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    return tiny_teacher(KNOWN)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "stores" / "one"


Rows = tuple[np.ndarray, np.ndarray, torch.Tensor, torch.Tensor]


def rows(lengths: Sequence[int], dim: int = 6, seed: int = 0, size: float = 1.0) -> Rows:
    """Sentences as a batch gives them."""
    random = np.random.default_rng(seed)
    words = random.integers(-1, 9, sum(lengths))
    numbers = torch.from_numpy(random.normal(0, size, (len(lengths) + sum(lengths), dim))).float()
    return words, np.array(lengths, np.int64), numbers[: len(lengths)], numbers[len(lengths) :]


def written(place: Path | None, *batches: Rows, states: bool = True) -> Contexts:
    writer = ContextWriter(place, 6, states=states)
    for words, lengths, contexts, of_words in batches:
        writer.add(words, lengths, contexts, of_words if states else None)
    return writer.close()


def there(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# ---- what goes in comes out


@pytest.mark.parametrize("states", [True, False])
def test_what_was_written_comes_back_as_halves(states: bool, place: Path) -> None:
    batches = rows([3, 1, 4]), rows([2, 7], seed=1)
    kept = written(place, *batches, states=states)
    assert kept.scale == 1.0
    assert kept.path == place
    assert np.array_equal(kept.words, np.concatenate([batch[0] for batch in batches]))
    assert (kept.words == -1).any(), "unknown words keep their place"
    assert kept.lengths.tolist() == [3, 1, 4, 2, 7]
    assert np.array_equal(kept.contexts, torch.cat([batch[2] for batch in batches]).half().numpy())
    assert (kept.states is not None) is states
    if kept.states is not None:
        assert np.array_equal(kept.states, torch.cat([batch[3] for batch in batches]).half().numpy())
    assert there(place.parent) == ["one"]


def test_a_store_is_opened_without_being_read(place: Path) -> None:
    written(place, rows([3, 1, 4]))
    kept = Contexts.open(place)
    for array in (kept.words, kept.lengths, kept.contexts, kept.states):
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable
    assert Path(str(kept.contexts.filename)).parent == place  # type: ignore[attr-defined]


def test_without_a_place_the_same_stays_in_memory(place: Path) -> None:
    batches = rows([3, 1]), rows([5], seed=1)
    here, on_disk = written(None, *batches), written(place, *batches)
    assert here.path is None
    for name in ("words", "lengths", "contexts", "states", "scale"):
        assert np.array_equal(getattr(here, name), getattr(on_disk, name)), name


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_states_too_large_for_halves_are_scaled(size: float, place: Path) -> None:
    batch = rows([40, 30], size=size)
    kept = written(place, batch, rows([9], seed=1, size=4 * size))
    assert np.log2(kept.scale) == round(np.log2(kept.scale)), "a power of two changes no digit"
    assert kept.states is not None
    for got, wanted in ((kept.states[:70], batch[3]), (kept.contexts[:2], batch[2])):
        assert wanted.abs().max() > size
        assert np.allclose(got.astype(np.float64) * kept.scale, wanted.numpy(), rtol=1e-3, atol=size * 1e-6)
    assert np.isfinite(kept.states).all()
    assert Contexts.open(place).scale == kept.scale


def test_a_batch_without_sentences_is_nothing(place: Path) -> None:
    nothing = rows([])
    assert written(place, nothing, rows([2, 1]), nothing).lengths.tolist() == [2, 1]
    empty = written(place.with_name("two"), nothing)
    assert empty.contexts.shape == (0, 6)
    assert empty.words.shape == (0,)
    assert written(None, nothing).contexts.shape == (0, 6)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_states_that_are_no_numbers_are_the_teachers_fault(number: float, place: Path) -> None:
    batch = rows([3])
    batch[3][1, 2] = number
    writer = ContextWriter(place, 6, states=True)
    with pytest.raises(TeacherError, match="--precision"):
        writer.add(*batch)
    writer.abandon()
    assert there(place.parent) == []


# ---- what is no store


@pytest.mark.parametrize("file", ["contexts.f16", "states.f16", "words.i32", "lengths.i32"])
@pytest.mark.parametrize("how", ["short", "long", "gone"])
def test_a_store_with_a_file_of_another_size_is_named(file: str, how: str, place: Path) -> None:
    written(place, rows([3, 1, 4]))
    content = (place / file).read_bytes()
    (place / file).unlink()
    if how != "gone":
        (place / file).write_bytes(content[:-2] if how == "short" else content + b"\0\0")
    with pytest.raises(FormatError, match=re.escape(file)) as caught:
        Contexts.open(place)
    assert f"{len(content):,} bytes" in str(caught.value)
    assert str(place) in str(caught.value)


FOREIGN = {
    "no store.json": None,
    "not JSON": "nothing",
    "a list": "[1, 2]",
    "no shapes": '{"scale": 1.0}',
    "no scale": '{"shapes": {"words": [0], "lengths": [0], "contexts": [0, 6]}}',
    "shapes that are none": '{"shapes": {"words": ["x"]}, "scale": 1.0}',
    "a list of shapes": '{"shapes": [1], "scale": 1.0}',
    "an array of another kind": '{"shapes": {"weights": [0]}, "scale": 1.0}',
    "arrays missing": '{"shapes": {"words": [0]}, "scale": 1.0}',
}


@pytest.mark.parametrize("case", [*FOREIGN])
def test_a_folder_of_other_things_is_not_a_store(case: str, place: Path) -> None:
    place.mkdir(parents=True)
    text = FOREIGN[case]
    if text is not None:
        (place / "store.json").write_text(text, "utf-8")
    with pytest.raises(FormatError, match="not a context cache; remove it"):
        Contexts.open(place)


def test_a_file_is_not_a_store(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("mine", "utf-8")
    with pytest.raises(FormatError, match="not a context cache"):
        Contexts.open(place)


# ---- what goes wrong


def desk(place: Path, words: int = 600, **source: object) -> StoreLocation:
    return StoreLocation(place.parent, source, words, words // 10)


def encoding_pass(
    teacher: Teacher, desk: StoreLocation | None, *parts: str, vocabulary: Vocabulary | None = None
) -> EncodingPass:
    learners = {name: LEARNERS[name]() for name in parts or ("attentive_skipgram",)}
    return make_pass(learners, teacher, vocabulary or counted(TEXTS), store=desk)


@pytest.mark.parametrize("methods", [("x2static",), ("attentive_skipgram",)])
def test_the_estimated_size_is_close_to_the_size_on_disk(
    methods: tuple[str, ...], teacher: Teacher, place: Path
) -> None:
    words = sum(len(text.split()) for text in TEXTS)
    made = encoding_pass(teacher, StoreLocation(place.parent, {}, words, len(TEXTS)), *methods)
    said = made.bytes_needed
    kept = run_pass(made, TEXTS).store_path(methods[0])
    assert kept is not None
    files = sum(file.stat().st_size for file in kept.iterdir() if file.name != "store.json")
    assert said == files == bytes_needed(words, len(TEXTS), 16, states=methods != ("x2static",))
    assert encoding_pass(teacher, StoreLocation(place.parent, {}, words, len(TEXTS)), *methods).bytes_needed == 0


def free(monkeypatch: pytest.MonkeyPatch, size: float) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**12, used=0, free=int(size)))


def test_a_disk_that_is_too_small_is_refused_beforehand(
    teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free(monkeypatch, 31.2e9)
    # 1e9 words: 4 bytes each and 32 for its state, and 36 for each of 1e8 sentences
    with pytest.raises(StillvecError, match=r"39\.6 GB in .*stores.* 31\.2 GB free") as caught:
        encoding_pass(teacher, desk(place, 10**9))
    assert "\n" not in str(caught.value)
    assert not place.parent.exists()
    free(monkeypatch, 39.6e9)
    with pytest.raises(StillvecError, match="free"):  # some of it is left alone
        encoding_pass(teacher, desk(place, 10**9))
    free(monkeypatch, 39.8e9)
    encoding_pass(teacher, desk(place, 10**9))


def test_the_disk_holds_all_stores_of_a_run_or_none_is_written(
    teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [
        encoding_pass(teacher, desk(place, 10**8), name).bytes_needed for name in ("x2static", "attentive_skipgram")
    ]
    monkeypatch.setattr(context_store, "_MIN_FREE", 0)
    free(monkeypatch, sum(sizes) - 1)
    for name in ("x2static", "attentive_skipgram"):
        encoding_pass(teacher, desk(place, 10**8), name)
    with pytest.raises(StillvecError, match="free"):
        encoding_pass(teacher, desk(place, 10**8), "x2static", "attentive_skipgram")


def test_an_existing_store_needs_no_disk_space(teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_pass(encoding_pass(teacher, desk(place)), TEXTS)
    free(monkeypatch, 0)
    again = encoding_pass(teacher, desk(place))
    assert not again.reads(TextSource.SENTENCES)
    assert again.store_path("attentive_skipgram") == first.store_path("attentive_skipgram")


def test_a_folder_that_cannot_be_written_is_refused_beforehand(
    teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.parent.write_text("mine", "utf-8")
    with pytest.raises(StillvecError, match=r"stores is a file"):
        encoding_pass(teacher, desk(place))
    place.parent.unlink()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StillvecError, match="read-only"):
        encoding_pass(teacher, desk(place))
    assert not place.parent.exists()


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Writing more fails as on a full disk, with another word for it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("where", ["in the pass", "at the last flush"])
def test_a_disk_that_gets_full_is_one_sentence_and_leaves_nothing(where: str, teacher: Teacher, place: Path) -> None:
    made = encoding_pass(teacher, desk(place), "attentive_skipgram" if where == "in the pass" else "x2static")
    limit = 8192 if where == "in the pass" else 1024  # less than the stream's own buffer: only flushing writes
    with no_file_above(limit), pytest.raises(StillvecError, match=r"stores: File too large"):
        run_pass(made, TEXTS)
    assert there(place.parent) == []
    assert run_pass(encoding_pass(teacher, desk(place)), TEXTS).store_path("attentive_skipgram") is not None, (
        "the next one succeeds"
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, GeneratorExit])
def test_whatever_ends_a_pass_leaves_nothing(error: type[BaseException], teacher: Teacher, place: Path) -> None:
    made = encoding_pass(teacher, desk(place))

    def corpus() -> Iterator[TextChunk]:
        yield TextChunk(TEXTS[:32])
        assert len(there(place.parent)) <= 1
        raise error

    if error is GeneratorExit:  # who listened has gone
        steps = made.run([TextChunk(TEXTS[:8]), TextChunk(TEXTS[8:16])], BatchBudget(64, 8))
        next(steps)
        assert [name.endswith(".part") for name in there(place.parent)] == [True]
        del steps
    else:
        with pytest.raises(error):
            for _ in made.run(corpus(), BatchBudget(64, 8)):
                pass
    assert there(place.parent) == []
    assert made.store_path("attentive_skipgram") is None


def test_an_interrupt_while_the_store_is_closed_leaves_nothing(
    teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        run_pass(encoding_pass(teacher, desk(place)), TEXTS)
    assert there(place.parent) == []


def test_leftovers_of_ended_processes_are_removed_and_those_of_running_ones_and_of_others_stay(place: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    place.parent.mkdir()
    here = name_machine()
    gone = [f".one.{here}.{ended.pid}.abc.part", f".another.{here}.{ended.pid}.abc.part"]
    stay = [f".one.{here}.{os.getpid()}.abc.part", f".one.01234567.{ended.pid}.abc.part", "another", ".profile"]
    for name in (*gone, *stay):
        (place.parent / name).mkdir()
        (place.parent / name / "contexts.f16").write_bytes(b"12")
    written(place, rows([3]))
    assert there(place.parent) == sorted([*stay, "one"])


def test_of_two_runs_at_once_both_end_well(teacher: Teacher, place: Path) -> None:
    first, second = ContextWriter(place, 6, states=True), ContextWriter(place, 6, states=True)
    for writer in (first, second):
        writer.add(*rows([3, 1]))
    assert len(there(place.parent)) == 2, "neither has swept the other"
    a, b = first.close(), second.close()
    assert a.path == b.path == place
    assert np.array_equal(np.array(a.contexts), np.array(b.contexts))
    assert there(place.parent) == ["one"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_store_can_be_read_only_by_its_owner(place: Path) -> None:
    written(place, rows([3]))
    assert place.stat().st_mode & 0o777 == 0o700


# ---- what a store is of


def name_of(teacher: Teacher, vocabulary: Vocabulary, part: StoredContexts, source: dict[str, object]) -> str:
    keeper = part.make_accumulator(teacher, vocabulary)
    return StoreLocation(Path("stores"), source).path_for(keeper._facts).name


def test_whatever_changes_a_store_changes_its_name(teacher: Teacher) -> None:
    vocabulary, part = counted(TEXTS), StoredContexts()
    plain: dict[str, object] = {"corpus": "0123", "contexts": 20, "seed": 0}
    words = list(vocabulary.words)
    names = [
        name_of(teacher, vocabulary, part, plain),
        name_of(tiny_teacher(KNOWN, seed=1), vocabulary, part, plain),
        name_of(teacher, Vocabulary(words[1:], vocabulary.counts[1:]), part, plain),
        name_of(teacher, Vocabulary(words, vocabulary.counts, lowercase=False), part, plain),
        name_of(teacher, vocabulary, StoredContexts("1"), plain),
        name_of(teacher, vocabulary, StoredContexts("0-2"), plain),
        name_of(teacher, vocabulary, StoredContexts(unit="paragraph"), plain),
        name_of(teacher, vocabulary, StoredContexts(unit="paragraph", min_sentences=2), plain),
        name_of(teacher, vocabulary, StoredContexts(states=True), plain),
        *(name_of(teacher, vocabulary, part, plain | change) for change in ({"corpus": "0124"}, {"contexts": 21})),
        *(name_of(teacher, vocabulary, part, plain | change) for change in ({"seed": 1}, {"contexts": None})),
    ]
    assert len(set(names)) == len(names)
    for name, other in (("last", "2"), ("-1", "2-2")):  # the same layer, written otherwise
        one, two = (name_of(teacher, vocabulary, StoredContexts(each), plain) for each in (name, other))
        assert one == two == names[0]
    assert name_of(tiny_teacher(KNOWN), vocabulary, StoredContexts(), dict(reversed(plain.items()))) == names[0]


def test_another_run_of_the_same_does_not_ask_the_teacher(teacher: Teacher, place: Path) -> None:
    first = run_pass(encoding_pass(teacher, desk(place)), TEXTS).statistics_of("attentive_skipgram")["contexts"]
    again = encoding_pass(teacher, desk(place))
    steps = [*again.run(iter_of_none(), BatchBudget(64, 8))]
    assert steps == []
    for name, array in again.statistics_of("attentive_skipgram")["contexts"].arrays.items():
        assert np.array_equal(array, first[name]), name
    in_memory = run_pass(encoding_pass(teacher, None), TEXTS).statistics_of("attentive_skipgram")["contexts"]
    for name, array in in_memory.arrays.items():
        assert np.array_equal(array, first[name]), name


def test_contexts_of_several_layers_are_their_mean(teacher: Teacher) -> None:
    contexts = {}
    for layer in ("1", "2", "1-2"):
        learner = LEARNERS["x2static"](layer=layer)
        stored = run_pass(make_pass({"it": learner}, teacher, counted(TEXTS)), TEXTS).statistics_of("it")["contexts"]
        contexts[layer] = np.asarray(stored["stored:contexts"], np.float32) * float(stored["stored:scale"])
    np.testing.assert_allclose(contexts["1-2"], (contexts["1"] + contexts["2"]) / 2, atol=2e-3)
    assert not np.allclose(contexts["1"], contexts["2"], atol=2e-3)


def iter_of_none() -> Iterator[TextChunk]:
    raise AssertionError("nobody should read")
    yield


def test_what_a_store_says_of_itself_can_be_read(place: Path) -> None:
    written(place, rows([3, 1]))
    content = json.loads((place / "store.json").read_text("utf-8"))
    assert content == {
        "version": 1,
        "scale": 1.0,
        "shapes": {"contexts": [2, 6], "words": [4], "lengths": [2], "states": [4, 6]},
    }


def test_a_run_killed_before_it_forgot_its_checkpoint_leaves_a_store_like_any_other(place: Path) -> None:
    writer = ContextWriter(place, 6, states=False, checkpoint=place.parent / "out.checkpoint")
    words, lengths, contexts, _ = rows([2, 3])
    writer.add(words, lengths, contexts)
    writer.save_state()
    assert writer._part is not None
    assert (writer._part / "checkpoint").exists()
    killed = shutil.copytree(writer._part, place.parent / "killed")
    writer.close()
    whole = sorted(path.name for path in place.iterdir())
    (place / "checkpoint").write_bytes((killed / "checkpoint").read_bytes())
    Contexts.open(place)
    assert (
        sorted(path.name for path in place.iterdir())
        == whole
        == ["contexts.f16", "lengths.i32", "store.json", "words.i32"]
    )
