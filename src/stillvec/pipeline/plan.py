"""What a run will take, estimated before it starts (`stillvec distill --dry-run`): words, time, memory, disk.

The corpus is counted and selected from as in the run. Some of its chunks are tokenized and read: that gives the rest by
its characters, the speed, and the memory of loading, preparing and reading, in this very process; `memory_estimate`
adds the rest. A run that is resumed skips what its checkpoint has read. Nothing is written.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from stillvec.encoding import BatchBudget, BatchBuilder, TextChunk, encode_batches, list_layers, synchronize
from stillvec.learners import EncodingPass, PassPlan
from stillvec.learners.accumulators import TextSource
from stillvec.learners.encoding_pass import CORPUS, PARAGRAPHS, WITHOUT_CONTEXT, StageState, read_stages
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.memory import peak_memory, reset_peak, resident_memory
from stillvec.pipeline.corpus_counts import ChoiceFacts
from stillvec.pipeline.distillation_run import Run
from stillvec.pipeline.memory_estimate import Measured, estimate_peak, output_bytes, table_bytes, text_bytes
from stillvec.pipeline.pass_checkpoint import Arrays
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.progress import Phase, Progress
from stillvec.teachers import Teacher
from stillvec.teachers.text_fit import TextFit
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.segmenters import SPACES

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
    preset: Mapping[str, object] = field(default_factory=dict)  # settings of the run that a preset set
    choice: ChoiceFacts = field(default_factory=ChoiceFacts)  # of the words
    segmenter: str = SPACES  # what a word is
    fit: TextFit | None = None  # of the teacher's tokens and the words of the corpus


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
    checkpoint = run.read_checkpoint(teacher, plan)
    loading_peak = peak_memory()
    reset_peak()
    accumulators = PassPlan(plan.learners, Vocabulary(())).make_accumulators(teacher).values()
    layers = list_layers(accumulators)
    trials: dict[str, _Trial] = {}
    for label, chunks in _texts(run, plan, teacher, checkpoint or {}).items():
        trial = trials[label] = _Trial()
        for _ in _try_texts(teacher, plan.matcher, layers, chunks, trial):
            seconds = time.perf_counter() - start
            yield Progress(Phase.SAMPLING, trial.n_characters, None, "characters", seconds, subject=label)
    measured = Measured(loading_peak, peak_memory(), resident_memory())
    return _estimate(run, plan, teacher, trials, time.perf_counter() - start, measured, checkpoint)


def _texts(run: Run, plan: PassPlan, teacher: Teacher, checkpoint: Arrays) -> dict[str, Iterable[TextChunk]]:
    """All that the teacher will read, by what it is called; what an earlier run has read is skipped."""
    texts: dict[str, Iterable[TextChunk]] = {}
    stages = read_stages(checkpoint)

    def rest(key: str, chunks: Iterable[TextChunk]) -> Iterable[TextChunk]:
        stage = stages.get(key, StageState())
        return () if stage.finished else islice(chunks, stage.bookmark.chunks, None)

    reads_sentences = plan.reads(TextSource.SENTENCES)
    if run.corpus is not None:
        settings, budget = run.settings, run.reader.budget(teacher)
        size, seed, matcher = budget.n_sentences, settings.seed, plan.matcher
        stream = SentenceStream(run.corpus, plan.vocabulary, settings.contexts, size, seed, matcher=matcher)
        texts |= {CORPUS: rest("corpus", stream.chunks())} if reads_sentences else {}
        texts |= {PARAGRAPHS: rest("paragraphs", stream.paragraphs())} if plan.reads(TextSource.PARAGRAPHS) else {}
    elif reads_sentences:
        texts[WITHOUT_CONTEXT] = [TextChunk([*plan.vocabulary])]
    own = plan.own_texts.items()
    return texts | {spec.label: rest(key, spec.texts(plan.vocabulary)) for key, (spec, _) in own}


def _estimate(
    run: Run,
    plan: PassPlan,
    teacher: Teacher,
    trials: dict[str, _Trial],
    seconds: float,
    measured: Measured,
    checkpoint: Arrays | None,
) -> Plan:
    learners, vocabulary, settings = plan.learners, plan.vocabulary, run.settings
    n_tokens = sum(trial.extrapolate(trial.n_tokens) for trial in trials.values())
    n_read = sum(trial.n_read for trial in trials.values())
    trial_seconds = sum(trial.seconds for trial in trials.values())
    corpora = [trials[label] for label in (CORPUS, PARAGRAPHS) if label in trials]
    n_words = max((trial.extrapolate(trial.n_words) for trial in corpora), default=0)
    n_sentences = max((trial.extrapolate(trial.n_sentences) for trial in corpora), default=0)
    for stage in read_stages(checkpoint or {}).values():
        n_words, n_sentences = n_words + stage.progress.n_words, n_sentences + stage.progress.n_sentences
    tables = table_bytes(learners, teacher, len(vocabulary))
    tables += text_bytes(learners, teacher, vocabulary, n_words, n_sentences)
    memory = estimate_peak(plan, settings, teacher, measured, n_words, n_sentences, checkpoint)
    on_gpu = teacher.device.type == "cuda"
    trained = {name: learner for name, learner in learners.items() if isinstance(learner, TrainedLearner)}
    store = run.store_location(vocabulary)
    return Plan(
        n_words=len(vocabulary),
        n_corpus_words=run.corpus_facts.n_words,
        n_sentences=sum(trial.extrapolate(trial.n_sentences) for trial in trials.values()),
        n_tokens=n_tokens,
        seconds=seconds - trial_seconds + (n_tokens * trial_seconds / n_read if n_read else 0.0),
        memory=memory,
        device_memory=synchronize(teacher.device) + tables if on_gpu else 0,
        disk=tables + sum(output_bytes(learner, settings, teacher, len(vocabulary)) for learner in learners.values()),
        checkpoint=tables,
        store=EncodingPass(PassPlan(trained, vocabulary), teacher, store=store).bytes_needed,
        device=str(teacher.device),
        precision=teacher.precision,
        preset=run.preset,
        choice=run.corpus_facts.choice,
        segmenter=settings.segmenter,
        fit=run.fit,
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
            start, chosen = time.perf_counter(), batches[:: max(1, len(batches) // _TRIAL_BATCHES)]
            for encoded in encode_batches(teacher, chosen, layers) if layers else ():
                for layer in layers:
                    encoded.words(layer), encoded.sentences(layer)
                synchronize(teacher.device)
                seconds = time.perf_counter() - start
                trial.seconds, start = trial.seconds + seconds, start + seconds
                trial.n_read += len(encoded.batch.token_index)
                if trial.seconds > _TRIAL_SECONDS:
                    break
        yield
