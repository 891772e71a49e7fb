"""What a run will take, estimated before it starts (`stillvec distill --dry-run`): words, time, memory, disk.

The corpus is counted and selected from as in the run. Some of its chunks are tokenized and read: that gives the rest by
its characters, the speed, and the memory of loading, preparing and reading, in this very process. To that are added the
tables that accumulators fill, whose size for all words follows from those for no word and for one, and what methods say
they need to finish (`FINISH_MEMORY`). Nothing is written.
"""

import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stillvec.encoding import BatchBudget, BatchBuilder, TextChunk, encode_batch, synchronize
from stillvec.learners import EncodingPass, PassPlan
from stillvec.learners.accumulators import OwnTextsSpec, TextSource
from stillvec.learners.encoding_pass import CORPUS, PARAGRAPHS, WITHOUT_CONTEXT
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.pipeline.distillation_run import Run
from stillvec.pipeline.memory_estimate import finish_bytes, output_bytes, table_bytes, text_bytes
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.progress import Phase, Progress
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary, WordMatcher

_TRIAL_SECONDS = 10.0  # of reading, at most, for each kind of text
_TRIAL_BATCHES = 6  # per chunk


@dataclass(frozen=True)
class Plan:
    """What a run will take."""

    n_words: int  # of the vocabulary
    n_corpus_words: int
    n_sentences: int  # that the teacher will read, methods' own texts included
    n_tokens: int
    seconds: float
    memory: int  # bytes at the peak
    device_memory: int  # of the GPU; 0 without one
    disk: int  # for the result
    checkpoint: int  # for its checkpoint
    store: int  # for contexts to train on
    device: str
    precision: str


@dataclass
class _Trial:
    """Texts of one kind: how many characters there are, and what a sample of them gave."""

    n_characters: int = 0  # in all
    n_tried: int = 0  # characters of the sample, which has
    n_sentences: int = 0
    n_words: int = 0
    n_tokens: int = 0
    n_read: int = 0  # tokens that the teacher read
    seconds: float = 0.0  # in this time

    def extrapolate(self, number: int) -> int:
        """From the sample to all texts."""
        return round(number * self.n_characters / max(self.n_tried, 1))


def plan_run(run: Run) -> Generator[Progress, None, Plan]:
    """Estimate what a run will take."""
    start = time.perf_counter()
    teacher, plan = yield from run.prepare()
    loading_peak = _peak()
    with suppress(OSError):  # only Linux can reset the peak; elsewhere it is that of the whole process so far
        Path("/proc/self/clear_refs").write_text("5")
    accumulators = PassPlan(plan.learners, Vocabulary(())).make_accumulators(teacher).values()
    layers = sorted({layer for accumulator in accumulators for layer in accumulator.layers})
    trials: dict[str, _Trial] = {}
    for label, chunks in _texts(run, plan, teacher).items():
        trial = trials[label] = _Trial()
        for _ in _try_texts(teacher, plan.matcher, layers, chunks, trial):
            seconds = time.perf_counter() - start
            yield Progress(Phase.SAMPLING, trial.n_characters, None, "characters", seconds, subject=label)
    return _estimate(run, plan, teacher, trials, time.perf_counter() - start, loading_peak)


def _texts(run: Run, plan: PassPlan, teacher: Teacher) -> dict[str, Iterable[TextChunk]]:
    """All that the teacher will read, by what it is called."""
    texts: dict[str, Iterable[TextChunk]] = {}
    reads_sentences = plan.reads(TextSource.SENTENCES)
    if run.corpus is not None:
        settings, budget = run.settings, BatchBudget.for_teacher(teacher)
        size, seed, matcher = budget.n_sentences, settings.seed, plan.matcher
        stream = SentenceStream(run.corpus, plan.vocabulary, settings.contexts, size, seed, matcher=matcher)
        texts |= {CORPUS: stream.chunks()} if reads_sentences else {}
        texts |= {PARAGRAPHS: stream.paragraphs()} if plan.reads(TextSource.PARAGRAPHS) else {}
    elif reads_sentences:
        texts[WITHOUT_CONTEXT] = [TextChunk([*plan.vocabulary])]
    own = (spec for spec in plan.specs if isinstance(spec, OwnTextsSpec))
    return texts | {spec.label: spec.texts(plan.vocabulary) for spec in own}


def _estimate(
    run: Run, plan: PassPlan, teacher: Teacher, trials: dict[str, _Trial], seconds: float, loading_peak: int
) -> Plan:
    learners, vocabulary, settings = plan.learners, plan.vocabulary, run.settings
    reading_peak, resident = _peak(), _resident()
    n_tokens = sum(trial.extrapolate(trial.n_tokens) for trial in trials.values())
    n_read = sum(trial.n_read for trial in trials.values())
    trial_seconds = sum(trial.seconds for trial in trials.values())
    corpus = trials.get(CORPUS, _Trial())
    n_words, n_sentences = corpus.extrapolate(corpus.n_words), corpus.extrapolate(corpus.n_sentences)
    tables = table_bytes(learners, teacher, len(vocabulary))
    tables += text_bytes(learners, teacher, vocabulary, n_words, n_sentences)
    finishing = finish_bytes(learners, settings, teacher, vocabulary, n_words)
    on_gpu = teacher.device.type == "cuda"
    trained = {name: learner for name, learner in learners.items() if isinstance(learner, TrainedLearner)}
    store = run.store_location(vocabulary)
    return Plan(
        n_words=len(vocabulary),
        n_corpus_words=run.corpus_facts.n_words,
        n_sentences=sum(trial.extrapolate(trial.n_sentences) for trial in trials.values()),
        n_tokens=n_tokens,
        seconds=seconds - trial_seconds + (n_tokens * trial_seconds / n_read if n_read else 0.0),
        memory=max(
            loading_peak, reading_peak + (0 if on_gpu else tables), *(resident + tables + size for size in finishing)
        ),
        device_memory=synchronize(teacher.device) + tables if on_gpu else 0,
        disk=tables + sum(output_bytes(learner, settings, teacher, len(vocabulary)) for learner in learners.values()),
        checkpoint=tables,
        store=EncodingPass(PassPlan(trained, vocabulary), teacher, store=store).bytes_needed,
        device=str(teacher.device),
        precision=teacher.precision,
    )


def _try_texts(
    teacher: Teacher, matcher: WordMatcher, layers: Sequence[int], chunks: Iterable[TextChunk], trial: _Trial
) -> Iterator[None]:
    """Tokenize chunks 1, 2, 4, 8, … and read some of their batches, the longest among them."""
    builder = BatchBuilder.for_teacher(teacher, matcher, BatchBudget.for_teacher(teacher))
    next_tried = 1
    for number, chunk in enumerate(chunks, 1):
        n_characters = sum(map(len, chunk.texts))
        trial.n_characters += n_characters
        if number == next_tried:
            next_tried *= 2
            trial.n_tried += n_characters
            batches = builder(chunk)
            trial.n_sentences += sum(len(batch.tokens_per_sentence) for batch in batches)
            trial.n_tokens += sum(len(batch.token_index) for batch in batches)
            trial.n_words += sum(len(batch.word_id) for batch in batches)
            for batch in batches[:: max(1, len(batches) // _TRIAL_BATCHES)]:
                if layers and trial.seconds < _TRIAL_SECONDS:
                    start = time.perf_counter()
                    encoded = encode_batch(teacher, batch, layers)
                    for layer in layers:
                        encoded.words(layer), encoded.sentences(layer)
                    synchronize(teacher.device)
                    trial.seconds += time.perf_counter() - start
                    trial.n_read += len(batch.token_index)
        yield


def _resident() -> int:
    """Bytes of this process in memory now."""
    with suppress(OSError, ImportError):
        import resource

        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return _peak()


def _peak() -> int:
    """Bytes of this process in memory at its peak; 0 where the system does not say (Windows)."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
