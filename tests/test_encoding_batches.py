"""Batches: budgets held, nothing lost or doubled, nothing changed by company, nothing left running."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_teachers import TEXT, tiny_teacher

from stillvec.encoding import (
    Batch,
    BatchBudget,
    BatchBuilder,
    BatchLoader,
    Bookmark,
    Encoded,
    PassProgress,
    TextChunk,
    encode_batch,
    encode_batches,
    list_layers,
    run_pass,
)
from stillvec.encoding.batch import make_batches, window_starts
from stillvec.encoding.batch_loader import prefetch
from stillvec.encoding.caching_tokenizer import TokenizedTexts, align_words
from stillvec.errors import CorpusError, StillvecError
from stillvec.teachers import Teacher
from stillvec.teachers.device import torch_threads
from stillvec.vocabulary import Vocabulary, WordMatcher, WordSpans

WORDS = " ".join(TEXT).split()
VOCABULARY = Vocabulary([*dict.fromkeys(WORDS)])


@lru_cache(maxsize=4)
def _teacher(family: str = "bert") -> Teacher:
    return tiny_teacher(family=family, window=24)


def _text(length: int) -> str:
    return " ".join(WORDS[number % len(WORDS)] for number in range(length))


def _prepare(texts: Sequence[str], family: str = "bert") -> tuple[TokenizedTexts, WordSpans]:
    """Every word with a number of its own, so that it can be found again."""
    found = WordMatcher(VOCABULARY).match(texts)
    numbered = WordSpans(np.arange(len(found.ids), dtype=np.int32), found.starts, found.ends, found.text_index)
    return align_words(_teacher(family).tokenizer.encode(texts), numbered)[0], numbered


def _batches(texts: Sequence[str], budget: int, family: str = "bert") -> tuple[list[Batch], TokenizedTexts, WordSpans]:
    prepared, found = _prepare(texts, family)
    teacher = _teacher(family)
    made = make_batches(prepared, teacher.tokenizer, window=teacher.window, pad=teacher.pad, budget=budget)
    return [*made], prepared, found


lengths_of_texts = st.lists(st.integers(0, 90), max_size=30)


@settings(deadline=None, max_examples=60)
@given(lengths=lengths_of_texts, budget=st.integers(1, 400), family=st.sampled_from(["bert", "roberta", "xlnet"]))
def test_every_piece_and_word_is_read_once_within_the_budget(lengths: list[int], budget: int, family: str) -> None:
    texts = [_text(length) for length in lengths]
    made, prepared, found = _batches(texts, budget, family)
    cutter = _teacher(family).tokenizer
    sizes = prepared.n_tokens
    words: list[int] = []
    pieces: list[list[int]] = []
    for batch in made:
        assert batch.ids.size <= budget or len(batch.tokens_per_sentence) == 1
        assert batch.ids.shape[1] == batch.lengths.max() <= _teacher(family).window
        places = np.concatenate([batch.token_index, batch.word_token_index])
        row, column = np.divmod(places, batch.ids.shape[1])
        assert (row < len(batch.ids)).all()
        assert (column >= len(cutter.prefix)).all()
        assert (column < batch.lengths[row] - len(cutter.suffix)).all()  # neither special tokens nor padding
        assert len({*batch.token_index.tolist()}) == len(batch.token_index) == batch.tokens_per_sentence.sum()
        assert batch.tokens_per_word.sum() == len(batch.word_token_index)
        assert (batch.tokens_per_word > 0).all()
        words += batch.word_id.tolist()
        read = batch.ids.reshape(-1)[batch.token_index]
        pieces += [part.tolist() for part in np.split(read, np.cumsum(batch.tokens_per_sentence)[:-1])]
        for sentence in range(len(batch.tokens_per_sentence)):  # no sentence is parted
            own = found.text_index[batch.word_id[batch.word_sentence == sentence]]
            assert len({*own.tolist()}) <= 1
    assert sorted(words) == list(range(len(found.ids)))
    cut = [part.tolist() for part in np.split(prepared.token_ids, np.cumsum(prepared.n_tokens)[:-1])] if texts else []
    assert sorted(pieces) == sorted(part for part in cut if part)
    assert len(pieces) == (sizes > 0).sum()


@settings(deadline=None, max_examples=60)
@given(lengths=st.lists(st.integers(0, 200), min_size=1, max_size=12))
def test_padding_and_special_tokens_stand_where_they_should(lengths: list[int]) -> None:
    made, _, _ = _batches([_text(length) for length in lengths], 256)
    cutter, pad = _teacher().tokenizer, _teacher().pad
    for batch in made:
        for row, length in zip(batch.ids, batch.lengths.tolist(), strict=True):
            assert row[0] == cutter.prefix[0]
            assert row[length - 1] == cutter.suffix[0]
            assert (row[length:] == pad).all()
            assert not np.isin(row[1 : length - 1], [*cutter.prefix, *cutter.suffix, pad]).any()


@settings(deadline=None, max_examples=200)
@given(length=st.integers(0, 500), folder=st.integers(1, 60))
def test_windows_cover_the_text_and_overlap_by_a_quarter(length: int, folder: int) -> None:
    starts = window_starts(length, folder)
    assert starts[0] == 0
    assert starts[-1] == max(0, length - folder)
    assert starts == sorted({*starts})
    for one, other in pairwise(starts):
        assert one + folder - other >= folder // 4


def test_long_batches_are_mostly_text() -> None:
    lengths = np.random.default_rng(0).integers(1, 20, 2000)
    made, prepared, _ = _batches([_text(length) for length in lengths.tolist()], 512)
    assert len(prepared.token_ids) / sum(batch.ids.size for batch in made) > 0.7


def test_no_text_at_all_makes_no_batch() -> None:
    assert _batches([], 64)[0] == []
    assert _batches(["", ""], 64)[0] == []


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "xlnet"])
def test_other_sentences_of_a_batch_do_not_change_a_word(family: str) -> None:
    texts = [_text(length) for length in (1, 3, 30, 4, 12, 70, 0, 5)]
    alone = _states(_batches(texts, 1, family)[0], family)
    for budget in (64, 4096):
        together = _states(_batches(texts, budget, family)[0], family)
        assert together.keys() == alone.keys()
        for word, state in alone.items():
            torch.testing.assert_close(together[word], state, rtol=1e-5, atol=1e-5)


def _states(made: Sequence[Batch], family: str) -> dict[int, torch.Tensor]:
    heard: dict[int, torch.Tensor] = {}
    for batch in made:
        states = encode_batch(_teacher(family), batch, [2]).words(2)
        heard |= dict(zip(batch.word_id.tolist(), states, strict=True))
    return heard


# made ahead


def _preparation() -> BatchBuilder:
    return BatchBuilder.for_teacher(_teacher(), WordMatcher(VOCABULARY), BatchBudget(128, 16))


def _chunks(count: int) -> Iterator[TextChunk]:
    random = np.random.default_rng(0)
    for _ in range(count):
        yield TextChunk([_text(length) for length in random.integers(0, 40, 16).tolist()])


def _same(one: Batch, other: Batch) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        and getattr(one, name).dtype == getattr(other, name).dtype
        for name in Batch.__dataclass_fields__
    )


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """After the test no thread and no process of its own runs on."""
    threads = {*threading.enumerate()}
    yield
    until = time.monotonic() + 5
    while time.monotonic() < until and ({*threading.enumerate()} - threads or multiprocessing.active_children()):
        time.sleep(0.05)
    assert {*threading.enumerate()} - threads == set()
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_thread_and_processes_make_the_same_batches_in_order(workers: int) -> None:
    expected = [batch for chunk in _chunks(20) for batch in _preparation()(chunk)]
    with BatchLoader(_preparation(), workers) as ready:
        for _ in range(2):  # it may be asked again
            made = list(ready.batches(_chunks(20)))
            assert len(made) == len(expected)
            assert all(map(_same, made, expected))


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("workers", [0, 2])
def test_from_a_bookmark_on_the_batches_are_those_that_were_still_to_come(workers: int) -> None:
    with BatchLoader(_preparation(), workers) as ready:
        mark = Bookmark()
        marks, made = [], []
        for batch in ready.batches(_chunks(8), mark):
            marks.append(dataclasses.replace(mark))
            made.append(batch)
        assert len({each.chunks for each in marks}) == 8
        assert max(each.batches for each in marks) > 1
        for taken in (1, 2, 5, len(made) - 1, len(made)):
            rest = list(ready.batches(_chunks(8), dataclasses.replace(marks[taken - 1])))
            assert len(rest) == len(made) - taken
            assert all(map(_same, rest, made[taken:]))


@pytest.mark.usefixtures("nothing_left")
def test_chunks_before_a_bookmark_are_not_prepared() -> None:
    prepared: list[TextChunk] = []
    preparation = _preparation()

    class Counting(BatchBuilder):
        def __call__(self, marked: TextChunk) -> list[Batch]:
            prepared.append(marked)
            return super().__call__(marked)

    with BatchLoader(Counting(**vars(preparation)), 0) as ready:
        list(ready.batches(_chunks(8), Bookmark(6, 1)))
    assert len(prepared) == 2


def _breaking() -> Iterator[TextChunk]:
    yield from _chunks(3)
    raise CorpusError("The corpus broke off.")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_the_text_is_raised_where_batches_are_read(workers: int) -> None:
    with pytest.raises(CorpusError, match="broke off"), BatchLoader(_preparation(), workers) as ready:
        list(ready.batches(_breaking()))


@pytest.mark.usefixtures("nothing_left")
def test_an_error_in_a_process_is_raised_where_batches_are_read() -> None:
    bad = TextChunk([7])  # type: ignore[list-item]
    with pytest.raises(TypeError), BatchLoader(_preparation(), 2) as ready:
        list(ready.batches(iter([bad])))


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("workers", [0, 2])
def test_stopping_early_leaves_nothing_running(workers: int) -> None:
    taken = multiprocessing.Value("i", 0)  # the text may be read by another process

    def endless() -> Iterator[TextChunk]:
        while True:
            taken.value += 1
            yield from _chunks(1)

    with BatchLoader(_preparation(), workers) as ready:
        for number, _ in enumerate(ready.batches(endless())):
            if number == 2:
                break
    read = taken.value
    assert read
    time.sleep(0.5)
    assert taken.value <= read + 1


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_reader_that_fails_leaves_nothing_running(workers: int) -> None:
    def fail(ready: BatchLoader) -> None:
        for _ in ready.batches(_chunks(200)):
            raise RuntimeError("the teacher broke")

    with (
        pytest.raises(RuntimeError, match="teacher broke"),
        BatchLoader(_preparation(), workers) as ready,
    ):
        fail(ready)


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("which", [0, -1])  # a worker, the reader
def test_a_process_that_is_killed_is_reported_in_one_sentence(which: int) -> None:
    def slowly() -> Iterator[TextChunk]:
        for chunk in _chunks(100):
            time.sleep(0.02)
            yield chunk

    def go_through(ready: BatchLoader) -> None:
        for number, _ in enumerate(ready.batches(slowly())):
            if number == 3:
                multiprocessing.active_children()  # sorts out who lives
                assert ready._pool is not None
                os.kill(ready._pool._processes[which].pid, signal.SIGKILL)

    with pytest.raises(StillvecError, match="-9") as caught, BatchLoader(_preparation(), 2) as ready:
        go_through(ready)
    assert caught.value.code == "worker-died"


@pytest.mark.usefixtures("nothing_left")
def test_an_error_that_cannot_be_pickled_is_reported_as_text() -> None:
    class OddError(Exception):
        def __init__(self, one: str, two: str) -> None:
            super().__init__(f"{one} and {two}")

    def broken() -> Iterator[TextChunk]:
        yield from _chunks(2)
        raise OddError("salt", "pepper")

    with (
        pytest.raises(RuntimeError, match="OddError: salt and pepper"),
        BatchLoader(_preparation(), 2) as ready,
    ):
        list(ready.batches(broken()))


def test_workers_end_when_the_process_they_work_for_is_killed() -> None:
    """They hold its standard output open, so that reading it to the end waits for all of them."""
    code = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_encoding_batches import BatchLoader, _chunks, _preparation
with BatchLoader(_preparation(), 2) as ready:
    batches = ready.batches(_chunks(10_000))
    next(batches)
    print(*(process.pid for process in ready._pool._processes), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], capture_output=True, text=True)
    assert len(done.stdout.split()) == 3, done.stderr


@pytest.mark.parametrize("budget", [128 * 128, 20_000])  # 20,000: 156 rows, which is no round number
def test_shapes_for_a_gpu_are_few(budget: int) -> None:
    """cuDNN makes a plan for each: rows of a full batch are a round number, the last one's padding included."""
    teacher = _teacher()
    preparation = BatchBuilder(teacher.tokenizer, WordMatcher(VOCABULARY), teacher.window, teacher.pad, budget, True)
    random = np.random.default_rng(1)
    made = preparation(TextChunk([_text(length) for length in random.integers(5, 15, 9000).tolist()]))
    shapes = {batch.ids.shape for batch in made}
    assert len(made) > 4
    assert len(shapes) == 1
    rows, width = shapes.pop()
    assert rows % 32 == 0
    assert width == 128
    assert rows * width <= budget
    assert sum(len(batch.tokens_per_sentence) for batch in made) == 9000


@pytest.mark.usefixtures("nothing_left")
def test_what_is_made_ahead_is_bounded() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1, 1000):
            made.append(number)
            yield number

    coming = prefetch(items(), depth=4)
    assert next(coming) == 1
    time.sleep(0.3)
    assert len(made) <= 1 + 4 + 1  # taken, waiting, in hand
    assert [next(coming) for _ in range(3)] == [2, 3, 4]
    coming.close()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("nothing_left")
def test_all_that_is_made_ahead_arrives_in_order() -> None:
    assert list(prefetch(range(100), depth=3)) == list(range(100))
    assert list(prefetch([], depth=3)) == []


# the pass


class _Ear:
    def __init__(self, *layers: int) -> None:
        self.layers = layers
        self.heard: list[tuple[int, list[int]]] = []

    def update(self, encoded: Encoded) -> None:
        self.heard.append((len(encoded.batch.word_id), sorted(encoded.states)))


def test_all_accumulators_get_every_batch_of_one_pass() -> None:
    made = [batch for chunk in _chunks(3) for batch in _preparation()(chunk)]
    one, other, deaf = _Ear(0, 2), _Ear(1), _Ear()
    ears = [one, other, deaf]
    progress = list(run_pass(encode_batches(_teacher(), made, list_layers(ears)), ears))
    assert one.heard == other.heard == deaf.heard == [(len(batch.word_id), [0, 1, 2]) for batch in made]
    last = progress[-1]
    assert isinstance(last, PassProgress)
    assert last.n_words == sum(len(batch.word_id) for batch in made)
    assert last.n_tokens == sum(len(batch.token_index) for batch in made)
    assert last.n_sentences == sum(len(batch.tokens_per_sentence) for batch in made)


def test_words_outside_the_vocabulary_have_states_and_no_row() -> None:
    (batch,) = _preparation()(TextChunk(["the zebra sleeps"]))
    encoded = encode_batch(_teacher(), batch, [2])
    assert encoded.words(2).shape[0] == 3
    assert encoded.known.tolist() == [0, 2]
    assert [VOCABULARY.words[row] for row in encoded.known_id.tolist()] == ["the", "sleeps"]
    assert encoded.known_sentence.tolist() == [0, 0]


@pytest.mark.parametrize("n_threads", [2, 3, 8, 20])
def test_threads_that_read_a_batch_each_give_the_states_of_one_thread(n_threads: int) -> None:
    made = [batch for chunk in _chunks(3) for batch in _preparation()(chunk)]
    alone = [encode_batch(_teacher(), batch, [0, 2]) for batch in made]
    with torch_threads(n_threads):
        together = [*encode_batches(_teacher(), made, [0, 2])]
        assert torch.get_num_threads() == n_threads
    assert [each.batch for each in together] == made
    for one, other in zip(alone, together, strict=True):
        for layer in (0, 2):  # beyond 8, two threads share a batch and round differently
            tolerance = 0.0 if n_threads <= 8 else 1e-5
            torch.testing.assert_close(one.states[layer], other.states[layer], rtol=0, atol=tolerance)


def test_an_error_in_a_thread_that_reads_is_raised() -> None:
    made = [batch for chunk in _chunks(3) for batch in _preparation()(chunk)]
    with torch_threads(2), pytest.raises(IndexError):
        [*encode_batches(_teacher(), made, [99])]
    assert torch.get_num_threads() != 99


def test_a_bookmark_stays_at_the_batch_that_was_given_while_others_are_taken_ahead() -> None:
    def ahead(batches: Iterator[Batch]) -> Iterator[int]:
        taken = [len(batch.word_id) for batch in batches]  # all of them
        yield from taken

    bookmark, expected = Bookmark(), Bookmark()
    with BatchLoader(_preparation()) as loader:
        places = [(bookmark.chunks, bookmark.batches) for _ in loader.convert(ahead, _chunks(3), bookmark)]
        assert places == [(expected.chunks, expected.batches) for _ in loader.batches(_chunks(3), expected)]
