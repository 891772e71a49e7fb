"""The store of contexts: what goes in comes out, and what goes wrong leaves nothing that looks whole."""

from __future__ import annotations

import itertools
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
from typing import Any

import numpy as np
import pytest
import torch
from tiny_corpus import DOES, KIND, WHAT, WHERE, WHO, counted, sentences, slow_states

from stillvec.corpus import Corpus, split_sentences
from stillvec.encoding import Contexts, ContextWriter, Desk, Load, Marked, bytes_needed, store
from stillvec.errors import CallError, FormatError, StillvecError, TeacherError
from stillvec.learners import LEARNERS, Lesson
from stillvec.learners.kept import KeptContexts
from stillvec.pipeline import reading
from stillvec.pipeline.reading import Reading
from stillvec.teachers import Teacher
from stillvec.teachers.fake import tiny_teacher
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
    with pytest.raises(FormatError, match=re.escape(file)) as told:
        Contexts.open(place)
    assert f"{len(content):,} bytes" in str(told.value)
    assert str(place) in str(told.value)


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
def test_a_folder_of_other_things_is_no_store(case: str, place: Path) -> None:
    place.mkdir(parents=True)
    text = FOREIGN[case]
    if text is not None:
        (place / "store.json").write_text(text, "utf-8")
    with pytest.raises(FormatError, match="not a store of contexts; remove it"):
        Contexts.open(place)


def test_a_file_is_no_store(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("mine", "utf-8")
    with pytest.raises(FormatError, match="not a store"):
        Contexts.open(place)


# ---- what goes wrong


def desk(place: Path, words: int = 600, **source: object) -> Desk:
    return Desk(place.parent, source, words, words // 10)


def listened(lesson: Lesson, texts: Sequence[str] = TEXTS, workers: int = 0, *, whole: bool = False) -> Lesson:
    chunks = [Marked(texts[i : i + 16], paragraphs=whole, whole=whole) for i in range(0, len(texts), 16)]
    load = Load(256, 16, workers)
    for _ in lesson.read([], load, chunks) if whole else lesson.read(chunks, load):
        pass
    return lesson


def lesson(teacher: Teacher, desk: Desk | None, *parts: str, vocabulary: Vocabulary | None = None) -> Lesson:
    learners = {name: LEARNERS[name]() for name in parts or ("attentive_skipgram",)}
    return Lesson(learners, teacher, vocabulary or counted(TEXTS), desk=desk)


@pytest.mark.parametrize("methods", [("x2static",), ("attentive_skipgram",)])
def test_it_says_beforehand_how_much_room_it_needs_and_takes_about_that(
    methods: tuple[str, ...], teacher: Teacher, place: Path
) -> None:
    words = sum(len(text.split()) for text in TEXTS)
    made = lesson(teacher, Desk(place.parent, {}, words, len(TEXTS)), *methods)
    said = made.bytes_needed
    kept = listened(made).kept_at(methods[0])
    assert kept is not None
    files = sum(file.stat().st_size for file in kept.iterdir() if file.name != "store.json")
    assert said == files == bytes_needed(words, len(TEXTS), 16, states=methods != ("x2static",))
    assert lesson(teacher, Desk(place.parent, {}, words, len(TEXTS)), *methods).bytes_needed == 0


def free(monkeypatch: pytest.MonkeyPatch, size: float) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**12, used=0, free=int(size)))


def test_a_disk_that_is_too_small_is_refused_beforehand(
    teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free(monkeypatch, 31.2e9)
    # 1e9 words: 4 bytes each and 32 for its state, and 36 for each of 1e8 sentences
    with pytest.raises(
        StillvecError, match=r"need about 39\.6 GB in .*stores, and 31\.2 GB are free; .*--store"
    ) as told:
        lesson(teacher, desk(place, 10**9))
    assert "\n" not in str(told.value)
    assert not place.parent.exists()
    free(monkeypatch, 39.6e9)
    with pytest.raises(StillvecError, match="free"):  # some of it is left alone
        lesson(teacher, desk(place, 10**9))
    free(monkeypatch, 39.8e9)
    lesson(teacher, desk(place, 10**9))


def test_there_is_room_for_all_stores_of_a_run_or_for_none(
    teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [lesson(teacher, desk(place, 10**8), name).bytes_needed for name in ("x2static", "attentive_skipgram")]
    monkeypatch.setattr(store, "_SPARE", 0)
    free(monkeypatch, sum(sizes) - 1)
    for name in ("x2static", "attentive_skipgram"):
        lesson(teacher, desk(place, 10**8), name)
    with pytest.raises(StillvecError, match="free"):
        lesson(teacher, desk(place, 10**8), "x2static", "attentive_skipgram")


def test_a_store_that_is_there_needs_no_room(teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = listened(lesson(teacher, desk(place)))
    free(monkeypatch, 0)
    again = lesson(teacher, desk(place))
    assert not again.needs_corpus
    assert again.kept_at("attentive_skipgram") == first.kept_at("attentive_skipgram")


def test_a_folder_that_cannot_be_written_is_refused_beforehand(
    teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.parent.write_text("mine", "utf-8")
    with pytest.raises(StillvecError, match=r"stores is a file; give another --store"):
        lesson(teacher, desk(place))
    place.parent.unlink()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StillvecError, match="read-only"):
        lesson(teacher, desk(place))
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
    made = lesson(teacher, desk(place), "attentive_skipgram" if where == "in the pass" else "x2static")
    limit = 8192 if where == "in the pass" else 1024  # less than the stream's own buffer: only flushing writes
    with no_file_above(limit), pytest.raises(StillvecError, match=r"stores: File too large; nothing half-written"):
        listened(made)
    assert there(place.parent) == []
    assert listened(lesson(teacher, desk(place))).kept_at("attentive_skipgram") is not None, "the next one succeeds"


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, GeneratorExit])
def test_whatever_ends_a_pass_leaves_nothing(error: type[BaseException], teacher: Teacher, place: Path) -> None:
    made = lesson(teacher, desk(place))

    def corpus() -> Iterator[Marked]:
        yield Marked(TEXTS[:32])
        assert len(there(place.parent)) <= 1
        raise error

    if error is GeneratorExit:  # who listened has gone
        steps = made.read([Marked(TEXTS[:8]), Marked(TEXTS[8:16])], Load(64, 8))
        next(steps)
        assert [name.endswith(".part") for name in there(place.parent)] == [True]
        del steps
    else:
        with pytest.raises(error):
            for _ in made.read(corpus(), Load(64, 8)):
                pass
    assert there(place.parent) == []
    assert made.kept_at("attentive_skipgram") is None


def test_an_interrupt_while_the_store_is_closed_leaves_nothing(
    teacher: Teacher, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        listened(lesson(teacher, desk(place)))
    assert there(place.parent) == []


def test_leftovers_of_the_dead_are_swept_and_those_of_the_living_and_of_others_stay(place: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    place.parent.mkdir()
    here = store._here()
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


def test_a_store_can_be_read_by_whom_a_folder_can_be_read(place: Path, tmp_path: Path) -> None:
    written(place, rows([3]))
    (tmp_path / "plain").mkdir()
    assert place.stat().st_mode == (tmp_path / "plain").stat().st_mode


# ---- what a store is of


def name_of(teacher: Teacher, vocabulary: Vocabulary, part: KeptContexts, source: dict[str, object]) -> str:
    keeper = part.listen(teacher, vocabulary)
    return Desk(Path("stores"), source).place(keeper._facts).name


def test_whatever_changes_a_store_changes_its_name(teacher: Teacher) -> None:
    vocabulary, part = counted(TEXTS), KeptContexts()
    plain: dict[str, object] = {"corpus": "0123", "contexts": 20, "seed": 0}
    words = list(vocabulary.words)
    names = [
        name_of(teacher, vocabulary, part, plain),
        name_of(tiny_teacher(KNOWN, seed=1), vocabulary, part, plain),
        name_of(teacher, Vocabulary(words[1:], vocabulary.counts[1:]), part, plain),
        name_of(teacher, Vocabulary(words, vocabulary.counts, lowercase=False), part, plain),
        name_of(teacher, vocabulary, KeptContexts("1"), plain),
        name_of(teacher, vocabulary, KeptContexts("0-2"), plain),
        name_of(teacher, vocabulary, KeptContexts(reads="paragraph"), plain),
        name_of(teacher, vocabulary, KeptContexts(reads="paragraph", least=2), plain),
        name_of(teacher, vocabulary, KeptContexts(states=True), plain),
        *(name_of(teacher, vocabulary, part, plain | change) for change in ({"corpus": "0124"}, {"contexts": 21})),
        *(name_of(teacher, vocabulary, part, plain | change) for change in ({"seed": 1}, {"contexts": None})),
    ]
    assert len(set(names)) == len(names)
    for name, other in (("last", "2"), ("-1", "2-2")):  # the same layer, written otherwise
        one, two = (name_of(teacher, vocabulary, KeptContexts(each), plain) for each in (name, other))
        assert one == two == names[0]
    assert name_of(tiny_teacher(KNOWN), vocabulary, KeptContexts(), dict(reversed(plain.items()))) == names[0]


def test_another_run_of_the_same_does_not_ask_the_teacher(teacher: Teacher, place: Path) -> None:
    first = listened(lesson(teacher, desk(place))).heard("attentive_skipgram")["contexts"]
    again = lesson(teacher, desk(place))
    steps = [*again.read(iter_of_none(), Load(64, 8))]
    assert steps == []
    for name, array in again.heard("attentive_skipgram")["contexts"].arrays.items():
        assert np.array_equal(array, first[name]), name
    in_memory = listened(lesson(teacher, None)).heard("attentive_skipgram")["contexts"]
    for name, array in in_memory.arrays.items():
        assert np.array_equal(array, first[name]), name


def iter_of_none() -> Iterator[Marked]:
    raise AssertionError("nobody should read")
    yield


# ---- sentences inside paragraphs

SPLIT = [  # by hand; joined by blanks they are paragraphs
    ["The U.S. king sells 3.5 old boats.", "A child wants bread.", "Mr. Baker reads books by the river!"],
    ['The doctor said: "The horses in the U.S. are small."', "The sailor loves 1,000 strange songs, e.g. letters."],
    [
        "Who hides the coins near Dr. Painter?",
        "(The writer never finds them.)",
        "The teacher at St. John repairs shoes.",
    ],
    ["Only one sentence is in this paragraph."],
    [
        "The baker hides letter x.",
        "A mother brings apples...",
        "The neighbour carries flowers at 5 p.m. to the market.",
        "He sells wooden houses",
    ],
    ["“The student paints pictures!”", "The farmer buys no. 7 of the heavy letters.", "It is No. 8 Garden Road."],
]
PARAGRAPHS = [" ".join(each) for each in SPLIT]
_WORD = re.compile(r"\w+(?:[.,]\w+)*")


def found_in(text: str, end: int | None = None, start: int = 0) -> list[tuple[str, int, int]]:
    return [(match[0].lower(), *match.span()) for match in _WORD.finditer(text, start, end if end else len(text))]


def by_hand(paragraphs: Sequence[str], split: Sequence[Sequence[str]]) -> list[list[list[tuple[str, int, int]]]]:
    """Paragraph → sentence → words with their place in the paragraph."""
    found = []
    for paragraph, texts in zip(paragraphs, split, strict=True):
        starts = [paragraph.index(text) for text in texts]
        found.append([found_in(paragraph, at + len(text), at) for at, text in zip(starts, texts, strict=True)])
    return found


def slow_windows(teacher: Teacher, text: str) -> list[tuple[list[np.ndarray], tuple[int, int]]]:
    """For each piece of a text, its last-layer state in the windows where it is most central, and its span."""
    cut = teacher.cutter.cut([text])
    room = teacher.window - len(teacher.cutter.prefix) - len(teacher.cutter.suffix)
    count = len(cut.ids)
    starts = [0] if count <= room else [*range(0, count - room, room - room // 4), count - room]
    states: list[np.ndarray] = []
    for start in starts:
        ids = [*teacher.cutter.prefix, *cut.ids[start : start + room].tolist(), *teacher.cutter.suffix]
        got = teacher.states(torch.tensor([ids]), None, [teacher.depth])[teacher.depth][0]
        states.append(got[len(teacher.cutter.prefix) :].double().numpy())
    found = []
    for piece in range(count):
        inside = [(n, s) for n, s in enumerate(starts) if s <= piece < min(s + room, count)]
        left = {n: piece - s if s else count for n, s in inside}  # where the text begins or ends, nothing is cut off
        right = {n: s + room - 1 - piece if s + room < count else count for n, s in inside}
        central = {n: min(left[n], right[n]) for n, _ in inside}
        best = max(central.values())
        near = [states[n][piece - starts[n]] for n in central if central[n] >= best - 1]
        found.append((near, (int(cut.starts[piece]), int(cut.ends[piece]))))
    return found


def kept_paragraphs(
    teacher: Teacher, texts: Sequence[str], vocabulary: Vocabulary, workers: int = 0, **settings: Any
) -> dict[str, np.ndarray]:
    part = KeptContexts(reads="paragraph", states=True, **settings)
    learner: Any = SimpleNamespace(parts=lambda: {"contexts": part})
    heard = listened(Lesson({"it": learner}, teacher, vocabulary), texts, workers, whole=True).heard("it")["contexts"]
    return {name[5:]: np.array(array) for name, array in heard.arrays.items()}


def vocabulary_of(split: Sequence[Sequence[str]], without: Sequence[str] = ()) -> Vocabulary:
    words = dict.fromkeys(word for texts in split for text in texts for word, _, _ in found_in(text))
    return Vocabulary([word for word in words if word not in without], lowercase=True)


def by_words(kept: dict[str, np.ndarray]) -> dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]]:
    """Rows of the words of a sentence → its context, the states of its words."""
    ends = np.cumsum(kept["lengths"])
    spans = [slice(end - length, end) for end, length in zip(ends, kept["lengths"], strict=True)]
    made = {
        tuple(kept["words"][span].tolist()): (kept["contexts"][number], kept["states"][span])
        for number, span in enumerate(spans)
    }
    assert len(made) == len(spans), "no two sentences are alike"
    return made


def test_the_sentences_of_the_test_are_those_of_the_splitter() -> None:
    """Or what follows would examine the splitter."""
    assert [split_sentences(paragraph) for paragraph in PARAGRAPHS] == SPLIT


@pytest.mark.parametrize(("window", "layer"), [(128, "last"), (24, "last"), (12, "last"), (128, "1-2")])
def test_a_context_is_the_mean_of_the_words_of_its_sentence_read_in_its_paragraph(window: int, layer: str) -> None:
    teacher = tiny_teacher(KNOWN, window=window)
    without = ["boats", "in", "u.s", "writer"]
    vocabulary = vocabulary_of(SPLIT, without)
    kept = by_words(kept_paragraphs(teacher, PARAGRAPHS, vocabulary, layer=layer))
    checked = 0
    for paragraph, texts in zip(PARAGRAPHS, by_hand(PARAGRAPHS, SPLIT), strict=True):
        if layer == "last":
            pieces = slow_windows(teacher, paragraph)
        else:
            every, spans = slow_states(teacher, paragraph)
            pieces = [([state], span) for state, span in zip(every[1:].mean(0), spans, strict=True)]
        for words in texts:
            context, states = kept.pop(tuple(vocabulary.index.get(word, -1) for word, _, _ in words))
            wanted = []
            for (_, start, end), state in zip(words, states, strict=True):
                own = [near for near, span in pieces if span[0] < end and span[1] > start]
                choices = [np.mean(each, axis=0) for each in itertools.product(*own)]
                closest = min(choices, key=lambda choice: float(np.abs(choice - state).max()))
                assert np.allclose(state, closest, atol=4e-3)
                wanted.append(closest)
                checked += 1
            assert np.allclose(context, np.mean(wanted, axis=0), atol=4e-3)
    assert kept == {}, "there are no other sentences"
    assert checked == sum(len(found_in(paragraph)) for paragraph in PARAGRAPHS), "no word is beyond a window"


def test_a_sentence_in_its_paragraph_is_not_the_sentence_alone(teacher: Teacher) -> None:
    """Or the test above would say nothing of paragraphs."""
    vocabulary = vocabulary_of(SPLIT)
    whole = by_words(kept_paragraphs(teacher, PARAGRAPHS, vocabulary))
    alone = by_words(kept_paragraphs(teacher, [text for texts in SPLIT for text in texts], vocabulary))
    assert whole.keys() == alone.keys()
    differ = [not np.allclose(whole[words][0], alone[words][0], atol=0.05) for words in whole]
    assert sum(differ) == len(differ) - 1, "all but the one that is a paragraph of its own"


@pytest.mark.parametrize("least", [1, 2, 3, 5])
def test_paragraphs_of_fewer_sentences_are_left_out(least: int, teacher: Teacher) -> None:
    vocabulary = vocabulary_of(SPLIT)
    wanted = {
        tuple(vocabulary.index[word] for word, _, _ in words)
        for texts in by_hand(PARAGRAPHS, SPLIT)
        if len(texts) >= least
        for words in texts
    }
    if not wanted:
        with pytest.raises(CallError, match=r"No paragraph of the corpus has 5 sentences.*context=sentence"):
            kept_paragraphs(teacher, PARAGRAPHS, vocabulary, least=least)
        return
    lacking = set(range(len(vocabulary))) - {row for words in wanted for row in words}
    assert bool(lacking) is (least > 1)
    kept = kept_paragraphs(teacher, PARAGRAPHS, vocabulary, least=least)
    assert by_words(kept).keys() == wanted | {(row,) for row in lacking}, "words of short ones only are read alone"
    assert len(kept["states"]) == len(kept["words"]) == kept["lengths"].sum()


def test_a_word_without_a_context_is_no_short_paragraph(teacher: Teacher) -> None:
    vocabulary = Vocabulary([*vocabulary_of(SPLIT).words, "zebra"], lowercase=True)
    kept = by_words(kept_paragraphs(teacher, PARAGRAPHS, vocabulary, least=3))
    assert (vocabulary.index["zebra"],) in kept


def test_listeners_of_paragraphs_do_not_hear_each_others_words(teacher: Teacher) -> None:
    vocabulary = Vocabulary([*vocabulary_of(SPLIT).words, "zebra"], lowercase=True)
    learners: dict[str, Any] = {str(least): LEARNERS["x2static"](context="paragraph", least=least) for least in (1, 3)}
    together = listened(Lesson(learners, teacher, vocabulary), PARAGRAPHS, whole=True)
    for name, learner in learners.items():
        alone = listened(Lesson({name: learner}, teacher, vocabulary), PARAGRAPHS, whole=True).heard(name)["contexts"]
        for label, array in alone.arrays.items():
            assert np.array_equal(array, together.heard(name)["contexts"][label]), (name, label)


def test_processes_keep_what_a_thread_keeps(teacher: Teacher) -> None:
    texts, vocabulary = PARAGRAPHS * 8, vocabulary_of(SPLIT)
    one, two = (kept_paragraphs(teacher, texts, vocabulary, workers) for workers in (0, 2))
    assert one.keys() == two.keys()
    for name in one:
        assert np.array_equal(one[name], two[name]), name
    assert len(one["lengths"]) == 8 * sum(map(len, SPLIT))


@pytest.mark.parametrize("longest", [40, 100, 10_000])
def test_a_paragraph_too_long_to_be_read_is_cut_between_sentences(
    longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_WHOLE", longest)
    text = " ".join(PARAGRAPHS[:3])
    read = Reading(Corpus.from_texts([text]), vocabulary_of(SPLIT), None, 64)
    parts = [part for marked in read.paragraphs() for part in marked.texts]
    assert "".join(parts) == text
    assert [sentence for part in parts for sentence in split_sentences(part)] == split_sentences(text)
    for part in parts:
        assert len(part) <= longest + 1 or len(split_sentences(part)) == 1
    for one, two in itertools.pairwise(parts):  # none is shorter than it need be
        assert len(one) + len(split_sentences(two)[0]) >= longest
    assert (len(parts) > 1) is (longest < 1000)


def test_few_contexts_choose_whole_paragraphs() -> None:
    texts = [" ".join(TEXTS[i % 64 : i % 64 + 4]) for i in range(0, 640, 4)]
    vocabulary = counted(texts)

    def made(contexts: int | None, seed: int) -> list[str]:
        read = Reading(Corpus.from_texts(texts), vocabulary, contexts, 64, seed)
        return [text for marked in read.paragraphs() for text in marked.texts]

    assert made(None, 0) == texts
    few = made(3, 0)
    assert set(few) <= set(texts)
    assert len(few) < len(texts) / 2
    assert set(counted(few).words) == set(vocabulary.words)
    assert made(3, 0) == few != made(3, 1)


def test_what_a_store_says_of_itself_can_be_read(place: Path) -> None:
    written(place, rows([3, 1]))
    told = json.loads((place / "store.json").read_text("utf-8"))
    assert told == {
        "version": 1,
        "scale": 1.0,
        "shapes": {"contexts": [2, 6], "words": [4], "lengths": [2], "states": [4, 6]},
    }
