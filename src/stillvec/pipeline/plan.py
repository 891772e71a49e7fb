"""What a run will take, told before it starts (`stillvec distill --dry-run`): words, reading, time, memory, disk.

The corpus is counted and chosen from as in the run. Some of its chunks are cut into pieces and read: that gives the
rest by its characters, the pace, and the memory of loading, preparing and reading, in this very process. To that come
the tables that listeners fill and what methods need to finish, which are arithmetic. Nothing is written.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stillvec.encoding import BatchBudget, BatchBuilder, TextChunk, encode_batch, synchronize
from stillvec.learners import EncodingPass
from stillvec.learners.accumulators import OwnTextsSpec
from stillvec.learners.encoding_pass import CORPUS, PARAGRAPHS, WITHOUT
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.pipeline.distillation_run import Run
from stillvec.pipeline.memory_estimate import finishing, growing, listening, written
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.progress import Progress
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary, WordMatcher

_SECONDS = 10.0  # of reading on trial, at most, for each kind of text
_BATCHES = 6  # of a chunk on trial


@dataclass(frozen=True)
class Plan:
    """What a run will take."""

    words: int  # of the vocabulary
    corpus_words: int
    sentences: int  # that the teacher will read, texts of methods' own among them
    pieces: int
    seconds: float
    memory: int  # of this machine, at its peak, in bytes
    device_memory: int  # of the GPU; 0 without one
    disk: int  # for the result,
    checkpoint: int  # for its checkpoint,
    store: int  # for contexts that are trained on
    device: str
    precision: str


@dataclass
class _Trial:
    """Texts of one kind: how many characters there are, and what some of them gave."""

    characters: int = 0  # all there are
    tried: int = 0  # of these, those that were cut into pieces, which gave
    sentences: int = 0
    words: int = 0
    pieces: int = 0
    read: int = 0  # pieces that the teacher read,
    seconds: float = 0.0  # in this time

    def whole(self, number: int) -> int:
        """What is so many on trial, of all texts."""
        return round(number * self.characters / max(self.tried, 1))


class Planning:
    """Iterate over `steps()`; then `plan` is there."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.plan: Plan | None = None

    def steps(self) -> Iterator[Progress]:
        begun = time.perf_counter()
        teacher, learners, vocabulary = yield from self.run.prepared()
        before = _peak()
        _forget_peak()
        lesson = EncodingPass(learners, teacher, Vocabulary(()))
        trials: dict[str, _Trial] = {}
        for label, chunks in self._texts(lesson, teacher, vocabulary).items():
            trial = trials[label] = _Trial()
            for _ in _tried(teacher, vocabulary, lesson, chunks, trial):
                yield Progress(f"looking at {label}", trial.characters, None, "characters", time.perf_counter() - begun)
        self.plan = self._planned(lesson, vocabulary, trials, time.perf_counter() - begun, before)

    def _texts(self, lesson: EncodingPass, teacher: Teacher, vocabulary: Vocabulary) -> dict[str, Iterable[TextChunk]]:
        """All that the teacher will read, by what it is called."""
        found: dict[str, Iterable[TextChunk]] = {}
        if self.run.corpus is not None:
            chosen, load = self.run.settings, BatchBudget.for_teacher(teacher)
            reading = SentenceStream(self.run.corpus, vocabulary, chosen.contexts, load.n_sentences, chosen.seed)
            found |= {CORPUS: reading.chunks()} if lesson.needs_corpus else {}
            found |= {PARAGRAPHS: reading.paragraphs()} if lesson.needs_paragraphs else {}
        elif lesson.needs_corpus:
            found[WITHOUT] = [TextChunk([*vocabulary])]
        parts = {part: None for learner in lesson.learners.values() for part in learner.specs().values()}
        return found | {part.label: part.texts(vocabulary) for part in parts if isinstance(part, OwnTextsSpec)}

    def _planned(
        self, lesson: EncodingPass, vocabulary: Vocabulary, trials: dict[str, _Trial], took: float, before: int
    ) -> Plan:
        teacher, learners, settings = lesson.teacher, lesson.learners, self.run.settings
        reading, held = _peak(), _resident()
        sentences = sum(trial.whole(trial.sentences) for trial in trials.values())
        pieces = sum(trial.whole(trial.pieces) for trial in trials.values())
        read, seconds = sum(trial.read for trial in trials.values()), sum(trial.seconds for trial in trials.values())
        heard = trials.get(CORPUS, _Trial())
        tables = listening(learners, teacher, len(vocabulary))
        tables += growing(learners, teacher, vocabulary, heard.whole(heard.words), heard.whole(heard.sentences))
        ends = finishing(learners, settings, teacher, vocabulary, heard.whole(heard.words))
        on_gpu = teacher.device.type == "cuda"
        trained = {name: each for name, each in learners.items() if isinstance(each, TrainedLearner)}
        return Plan(
            words=len(vocabulary),
            corpus_words=self.run.facts["corpus"]["words"],
            sentences=sentences,
            pieces=pieces,
            seconds=took - seconds + (pieces * seconds / read if read else 0.0),
            memory=max(before, reading + (0 if on_gpu else tables), *(held + tables + each for each in ends)),
            device_memory=synchronize(teacher.device) + tables if on_gpu else 0,
            disk=tables + sum(written(each, settings, teacher, len(vocabulary)) for each in learners.values()),
            checkpoint=tables,
            store=EncodingPass(trained, teacher, vocabulary, desk=self.run.desk(vocabulary)).bytes_needed,
            device=str(teacher.device),
            precision=teacher.precision,
        )


def _tried(
    teacher: Teacher, vocabulary: Vocabulary, lesson: EncodingPass, chunks: Iterable[TextChunk], trial: _Trial
) -> Iterator[None]:
    """Chunks 1, 2, 4, 8, … are cut into pieces, and some of their batches read, the longest among them."""
    preparation = BatchBuilder.for_teacher(teacher, WordMatcher(vocabulary), BatchBudget.for_teacher(teacher))
    layers = sorted({layer for listener in lesson.listeners for layer in listener.layers})
    following = 1
    for number, chunk in enumerate(chunks, 1):
        characters = sum(map(len, chunk.texts))
        trial.characters += characters
        if number == following:
            following *= 2
            trial.tried += characters
            batches = preparation(chunk)
            trial.sentences += sum(len(batch.tokens_per_sentence) for batch in batches)
            trial.pieces += sum(len(batch.token_index) for batch in batches)
            trial.words += sum(len(batch.word_id) for batch in batches)
            for batch in batches[:: max(1, len(batches) // _BATCHES)]:
                if layers and trial.seconds < _SECONDS:
                    begun = time.perf_counter()
                    encoded = encode_batch(teacher, batch, layers)
                    for layer in layers:
                        encoded.words(layer), encoded.sentences(layer)
                    synchronize(teacher.device)
                    trial.seconds += time.perf_counter() - begun
                    trial.read += len(batch.token_index)
        yield


def _resident() -> int:
    """Bytes of this process in memory, now."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return _peak()


def _peak() -> int:
    """Bytes of this process in memory, at most so far."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _forget_peak() -> None:
    """Linux only; elsewhere the peak is that of all so far."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
