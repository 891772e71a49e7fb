"""Who reads the corpus of a run: this process here; processes of torchrun and a Ray cluster in `distributed`."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from stillvec.corpus import Corpus
from stillvec.encoding import NO_TEXT, BatchBudget, PassProgress, TextSize
from stillvec.encoding.context_store import StoreLocation
from stillvec.learners import EncodingPass, PassPlan
from stillvec.learners.accumulators import AccumulatorSpec, TextSource
from stillvec.learners.encoding_pass import CORPUS, PARAGRAPHS
from stillvec.learners.partition import Partition
from stillvec.learners.text_sample import measure_texts
from stillvec.pipeline.corpus_counts import NO_TERMS, CorpusFacts, Terms
from stillvec.pipeline.count_pool import PendingCount, count_corpus, start_count
from stillvec.pipeline.result_folders import describe_teacher
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.pipeline.settings import Distillation
from stillvec.progress import Progress
from stillvec.statistics import Statistics
from stillvec.teachers import Teacher, load_teacher
from stillvec.vocabulary import Vocabulary, WordMatcher

_PEEKED_CHUNKS = 4
Counting = Generator[Progress, None, tuple[Vocabulary, CorpusFacts]]
MergedStatistics = Mapping[AccumulatorSpec, Statistics]


@dataclass(frozen=True)
class ReadFacts:
    """What the teacher read, for the manifest."""

    contexts: int | None
    n_sentences: int = 0
    n_words: int = 0
    n_tokens: int = 0
    seconds: float = 0.0
    n_missing_words: int = 0  # that were read alone
    group: Mapping[str, int] = field(default_factory=dict)  # how many processes or workers read

    def to_manifest(self) -> dict[str, Any]:
        return {
            "contexts": self.contexts if self.contexts is not None else "all",
            "sentences": self.n_sentences,
            "words": self.n_words,
            "pieces": self.n_tokens,
            "seconds": round(self.seconds, 3),
            "pieces_a_second": round(self.n_tokens / max(self.seconds, 1e-9)),
            "words_without_context": self.n_missing_words,
            **self.group,
        }


@dataclass(frozen=True)
class ReadTask:
    """What a reader is given: a pass that is ready to run, and the text for it."""

    settings: Distillation
    corpus: Corpus | None
    facts: CorpusFacts
    encoding_pass: EncodingPass
    store: StoreLocation | None = None
    after_batch: Callable[[], None] = lambda: None  # writes a checkpoint when one is due

    @property
    def plan(self) -> PassPlan:
        return self.encoding_pass.plan

    def stream(
        self, budget: BatchBudget, partition: Partition | None = None, matcher: WordMatcher | None = None
    ) -> SentenceStream | None:
        """The corpus as the pass reads it, if there is one."""
        if self.corpus is None:
            return None
        return SentenceStream(
            self.corpus,
            self.plan.vocabulary,
            self.settings.contexts,
            budget.n_sentences,
            self.settings.seed,
            partition or Partition(),
            self.facts.n_characters,
            self.facts.n_words,
            matcher,
            -(-budget.workers // 2),  # the others make batches of what is selected
        )


class Reader:
    """Counts and reads a corpus for a `Run`: this one in this process, its subclasses with several.

    `threads` count and prepare text (default: this process's share of the cores). `pending` is a count of the same
    corpus that was begun before.
    """

    finishes = True  # the methods, and writes: of several processes one does

    def __init__(self, threads: int | None = None, pending: PendingCount | None = None) -> None:
        self.threads, self.pending = threads, pending
        self.partition = Partition()  # of the corpus, that this process reads

    def check(self, settings: Distillation, corpus: Corpus | None) -> None:
        """Raise an error for text or methods that cannot be read this way."""

    def load_teacher(self, settings: Distillation) -> Teacher:
        names = ("device", "precision", "prompt", "unsafe_weights", "remote_code")
        return load_teacher(settings.teacher, **{name: getattr(settings, name) for name in names})

    def describe_teacher(self, teacher: Teacher) -> dict[str, Any]:
        return describe_teacher(teacher)

    def budget(self, teacher: Teacher) -> BatchBudget:
        return BatchBudget.for_teacher(teacher, self.threads)

    def count(self, corpus: Corpus, settings: Distillation, terms: Terms) -> Counting:
        """The first reading."""
        is_begun = self.pending is not None and terms == NO_TERMS
        with nullcontext(self.pending) if is_begun else start_count(corpus, settings, self.threads, terms) as pending:
            return (yield from count_corpus(corpus, settings, pending, terms))

    def make_pass(self, plan: PassPlan, teacher: Teacher, store: StoreLocation | None) -> EncodingPass:
        return EncodingPass(plan, teacher, store=store)

    def read(self, task: ReadTask) -> Generator[Progress, None, ReadFacts]:
        """The second reading, by the teacher."""
        encoding_pass = task.encoding_pass
        budget = self.budget(encoding_pass.teacher)
        stream = task.stream(budget, self.partition, task.plan.matcher)
        sentences = stream if encoding_pass.reads(TextSource.SENTENCES) else None
        paragraphs = stream if encoding_pass.reads(TextSource.PARAGRAPHS) else None
        start = time.perf_counter()
        yield report_reading(encoding_pass, start)
        encoding_pass.expect_texts(expect_paragraphs(paragraphs, encoding_pass) if sentences else NO_TEXT)
        of_corpus = PassProgress()
        corpus_stage = CORPUS if sentences else PARAGRAPHS if paragraphs else ""
        chunks = sentences.chunks() if sentences else ()
        for stage, progress in encoding_pass.run(chunks, budget, paragraphs.paragraphs() if paragraphs else ()):
            of_corpus = progress if stage == corpus_stage else of_corpus
            task.after_batch()
            yield report_reading(encoding_pass, start)
        return ReadFacts(
            task.settings.contexts,
            of_corpus.n_sentences,
            of_corpus.n_words,
            encoding_pass.size.n_tokens,
            time.perf_counter() - start,
            encoding_pass.n_missing_words if sentences else 0,
        )

    def gather(self, task: ReadTask) -> Generator[Progress, None, MergedStatistics]:
        """Statistics of all processes, where there are several."""
        yield from ()
        return {}


def report_reading(encoding_pass: EncodingPass, start: float, others: TextSize = NO_TEXT) -> Progress:
    """How much of all texts was read, in the pass and by others, which it does not count yet."""
    size, total = TextSize.sum([encoding_pass.size, others]), encoding_pass.total_size
    losses = encoding_pass.losses
    remark = ", ".join(f"loss {loss:.4f}" for loss in losses) if losses else ""
    seconds = time.perf_counter() - start
    if total is None:
        return Progress(encoding_pass.phase, size.n_tokens, None, "tokens", seconds, remark)
    work = _work_of(size, encoding_pass.teacher), _work_of(total, encoding_pass.teacher)
    return Progress(encoding_pass.phase, size.n_tokens, total.n_tokens, "tokens", seconds, remark, work=work)


def _work_of(size: TextSize, teacher: Teacher) -> float:
    """What it costs a teacher to read this much: all tokens, also the special ones around each text."""
    tokenizer = teacher.tokenizer
    return float(size.n_tokens + size.n_texts * (len(tokenizer.prefix) + len(tokenizer.suffix)))


def expect_paragraphs(stream: SentenceStream | None, encoding_pass: EncodingPass) -> TextSize:
    """The size of the paragraphs that are read after the sentences, from the first of them."""
    first = [] if stream is None else [*islice(stream.paragraphs(), _PEEKED_CHUNKS)]
    if not first or not first[-1].position.done:
        return NO_TEXT
    done, total = first[-1].position
    return measure_texts(first, encoding_pass.teacher.tokenizer).scale(total / done)
