"""A distillation from corpus to folder: count, choose, read once, finish every method, write."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from stillvec.corpus import Corpus
from stillvec.encoding import BatchBudget, PassProgress, StoreLocation, format_bytes
from stillvec.errors import StillvecWarning, UsageError
from stillvec.files import cache_folder
from stillvec.learners import EncodingPass, Learner
from stillvec.learners.encoding_pass import CORPUS, PARAGRAPHS
from stillvec.learners.partition import Partition
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.pipeline.corpus_counts import count_corpus
from stillvec.pipeline.manifest import describe_teacher
from stillvec.pipeline.pass_checkpoint import Arrays, PassCheckpoint, facts_of_reading, facts_of_settings, half_stores
from stillvec.pipeline.previous_result import PreviousResult
from stillvec.pipeline.result_folders import describe_result
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.pipeline.settings import Distillation
from stillvec.progress import Progress
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.teachers import Teacher, load_teacher
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.word_matcher import own_words

_NEIGHBOURS = 8
_SENTENCE = 15  # words, about


class Run:
    """One distillation. Iterate over `steps()`; then `results` has each method's result."""

    def __init__(
        self,
        settings: Distillation,
        corpus: Corpus | None,
        add_to: str | os.PathLike[str] | None = None,
        *,
        store: str | os.PathLike[str] | None = None,
        resume: bool = False,
        out: str | os.PathLike[str] | None = None,
    ) -> None:
        self.settings = settings
        self.store = Path(store) if store is not None else default_store()
        self.resume = resume
        self.checkpoint = None if out is None else PassCheckpoint(out, resume=resume)  # beside where it is written
        self.corpus = corpus
        self.earlier = None if add_to is None else PreviousResult(Path(add_to))
        self.names: tuple[str, ...] = ()  # of the results, once the teacher is known
        self.results: dict[str, Result] = {}
        self.written: dict[str, Path] = {}  # where they were saved
        self.facts: dict[str, Any] = {}
        self.vocabulary: Vocabulary | None = None
        self.share = Partition()  # of the corpus: all of it, where nobody else reads
        self.threads: int | None = None  # that prepare text for a GPU; None: our share of the processor's
        settings.learners(depth=0)  # a wrong name or setting is told before the work
        self._decides = facts_of_settings(settings, None if add_to is None else Path(add_to))
        if self.checkpoint is not None:
            self.checkpoint.check(self._decides)

    def steps(self) -> Iterator[Progress]:
        begun = time.perf_counter()
        if self.checkpoint is not None and self.checkpoint.path.exists() and not self.resume:
            told = f"beginning anew, though {self.checkpoint.path} is there; --resume would go on from it"
            yield Progress(told, 0, None, "", 0.0)
        teacher, learners, vocabulary = yield from self.prepared()
        known = None if self.earlier is None else self.earlier.vocabulary
        kept = self._kept(teacher, vocabulary)
        lesson = EncodingPass(learners, teacher, vocabulary, known=known, desk=self.desk(vocabulary, kept))
        self._recall(lesson, kept)
        if lesson.bytes_needed:
            size = format_bytes(lesson.bytes_needed)
            yield Progress(f"contexts will take about {size} in {self.store}", 0, None, "", 0.0)
        yield from self._read(lesson, teacher, vocabulary)
        for name in learners:
            yield Progress(f"finishing {name}", 0, None, "", time.perf_counter() - begun)
            yield from self._finish(name, lesson, teacher, begun)

    def prepared(self) -> Generator[Progress, None, tuple[Teacher, dict[str, Learner], Vocabulary]]:
        """The teacher, who learns from it, and the words: all that is known before it reads."""
        yield Progress("loading the teacher", 0, None, "", 0.0)
        teacher = self._teacher()
        learners = self.settings.learners(teacher.depth, corpus=self.corpus is not None)
        self.names = tuple(learners)
        self._check(teacher, learners)
        if self.corpus is None:
            vocabulary = self._without_corpus(teacher)
        else:
            vocabulary = yield from self._count(self.corpus)
        if self.earlier is not None:
            vocabulary = self.earlier.vocabulary.union(vocabulary)
        self.vocabulary = vocabulary
        return teacher, learners, vocabulary

    def _check(self, teacher: Teacher, learners: Mapping[str, Learner]) -> None:
        """What this teacher cannot give is told before the corpus is read."""
        dim = self.settings.dim
        if dim is not None and dim > teacher.dim and not all(hasattr(each, "dim") for each in learners.values()):
            raise UsageError(f"The teacher has {teacher.dim} dimensions, and {dim} were asked for; give fewer.")
        EncodingPass(learners, teacher, Vocabulary(()))  # layers, poolings, dictionaries
        if self.earlier is not None:
            self.earlier.check(teacher, learners)
            kept = {key: self.earlier.manifest.get(key) for key in ("corpus", "read", "added_to")}
            self.facts["added_to"] = {"name": self.earlier.path.name, **kept}

    def _kept(self, teacher: Teacher, vocabulary: Vocabulary) -> Arrays | None:
        """What an earlier run left to be gone on with."""
        load = self.load(teacher)
        self._decides |= facts_of_reading(teacher, load, self.facts["corpus"], vocabulary)
        return None if self.checkpoint is None else self.checkpoint.read(self._decides)

    def _recall(self, lesson: EncodingPass, kept: Arrays | None) -> None:
        if not lesson.can_remember:
            if self.resume:
                told = "A method that trains in the stream keeps no checkpoint of the pass, which begins anew."
                warnings.warn(told, StillvecWarning, stacklevel=2)
            self.checkpoint = None
        elif kept is not None and self.checkpoint is not None:
            try:
                lesson.recall(kept)
            except (KeyError, IndexError, ValueError, TypeError, RuntimeError, OverflowError):
                raise self.checkpoint.unread() from None

    def _write_checkpoint(self, lesson: EncodingPass) -> None:
        """Now and then, and at the end of the pass, before methods are finished and stores put away."""
        if self.checkpoint is not None and self.checkpoint.due(over=lesson.over):
            self.checkpoint.write(self._decides, lesson.remember)

    def _teacher(self) -> Teacher:
        chosen = self.settings
        return load_teacher(
            chosen.teacher,
            device=chosen.device,
            precision=chosen.precision,
            unsafe_weights=chosen.unsafe_weights,
            remote_code=chosen.remote_code,
        )

    def _without_corpus(self, teacher: Teacher) -> Vocabulary:
        """The user's words, else the whole words of the teacher's own vocabulary."""
        kept = self.settings.keep
        words = kept or own_words(teacher.tokenizer.vocabulary(), self.settings.lowercase)
        if not words:
            raise UsageError(
                f"The teacher {teacher.name} has no words of its own; give a corpus, or words with --keep."
            )
        self.facts["corpus"] = {"words": 0, "from": "the list given" if kept else "the teacher's vocabulary"}
        folded = dict.fromkeys(fold(word, self.settings.lowercase) for word in words)
        return Vocabulary([*folded][: self.settings.max_words], lowercase=self.settings.lowercase)

    def _count(self, corpus: Corpus) -> Generator[Progress, None, Vocabulary]:
        vocabulary, self.facts["corpus"] = yield from count_corpus(corpus, self.settings)
        return vocabulary

    def _read(self, lesson: EncodingPass, teacher: Teacher, vocabulary: Vocabulary) -> Iterator[Progress]:
        load = self.load(teacher)
        reading = self.reading(vocabulary, load) if lesson.needs_corpus else None
        whole = self.reading(vocabulary, load) if lesson.needs_paragraphs else None
        begun = time.perf_counter()
        stages: dict[str, PassProgress] = {}
        chunks, paragraphs = reading.chunks() if reading else [], whole.paragraphs() if whole else []
        for stage, progress in lesson.read(chunks, load, paragraphs):
            stages[stage] = progress
            self._write_checkpoint(lesson)
            of_corpus = stage in (CORPUS, PARAGRAPHS) and self.corpus is not None
            total = self.facts["corpus"]["words"] if of_corpus else None
            remark = ", ".join(f"loss {loss:.4f}" for loss in lesson.losses)
            yield Progress(f"reading {stage}", progress.corpus_position, total, "words", progress.seconds, remark)
        in_corpus = CORPUS if reading is not None else PARAGRAPHS
        first = stages.get(in_corpus) if reading is not None or whole is not None else None
        pieces, seconds = sum(each.n_tokens for each in stages.values()), time.perf_counter() - begun
        self.facts["read"] = {
            "contexts": self.settings.contexts if self.settings.contexts is not None else "all",
            "sentences": first.n_sentences if first else 0,
            "words": first.n_words if first else 0,
            "pieces": pieces,
            "seconds": round(seconds, 3),
            "pieces_a_second": round(pieces / max(seconds, 1e-9)),
            "words_without_context": lesson.lacking if reading is not None else 0,
        }

    def load(self, teacher: Teacher) -> BatchBudget:
        """How much the teacher gets at once."""
        return BatchBudget.for_teacher(teacher, self.threads)

    def reading(self, vocabulary: Vocabulary, load: BatchBudget) -> SentenceStream | None:
        """The corpus as the pass wants it, if there is one."""
        if self.corpus is None:
            return None
        chosen, facts = self.settings, self.facts["corpus"]
        return SentenceStream(
            self.corpus,
            vocabulary,
            chosen.contexts,
            load.n_sentences,
            chosen.seed,
            self.share,
            facts["characters"],
            facts["words"],
        )

    def desk(self, vocabulary: Vocabulary, kept: Arrays | None = None) -> StoreLocation | None:
        """Where contexts are kept, and for what text; without a corpus there is little to keep."""
        if self.corpus is None:
            return None
        facts, chosen = self.facts["corpus"], self.settings
        seed = 0 if chosen.contexts is None else chosen.seed  # where everything is read, nothing is left to chance
        source = {"corpus": facts["digest"], "contexts": chosen.contexts, "seed": seed}
        words = facts["words"]
        if chosen.contexts is not None:  # a context of one word is one of its neighbours too
            words = min(words, _NEIGHBOURS * int(vocabulary.counts.clip(max=chosen.contexts).sum()))
        place = None if self.checkpoint is None else self.checkpoint.path
        there = 0 if kept is None else half_stores(kept)
        return StoreLocation(self.store, source, words, words // _SENTENCE, place, there)

    def _finish(self, name: str, lesson: EncodingPass, teacher: Teacher, begun: float) -> Iterator[Progress]:
        learner = lesson.learners[name]
        statistics = lesson.statistics_of(name)
        if self.earlier is not None:
            statistics = self.earlier.merged(name, statistics)
        if isinstance(learner, TrainedLearner):
            finished = yield from self._train(name, learner, statistics, lesson)
        else:
            finished = learner.finish(statistics)
        facts = {**self.facts, "seconds": time.perf_counter() - begun}
        told = self.describe_teacher(teacher)
        self.results[name] = describe_result(finished, learner, statistics, self.settings, told, facts)

    def describe_teacher(self, teacher: Teacher) -> dict[str, Any]:
        """For the manifest."""
        return describe_teacher(teacher)

    def _train(
        self, name: str, learner: TrainedLearner, statistics: Mapping[str, Statistics], lesson: EncodingPass
    ) -> Generator[Progress, None, Result]:
        """Where the teacher was, so that `--device cpu` is the CPU for all of it."""
        begun = time.perf_counter()
        steps = learner.steps(statistics, lesson.kept_at(name), resume=self.resume, device=lesson.teacher.device)
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                finished: Result = end.value
                return finished
            seconds = time.perf_counter() - begun
            yield Progress(f"training {name}", step.done, step.total, "sentences", seconds, f"loss {step.loss:.4f}")


def default_store() -> Path:
    """$STILLVEC_CACHE, or the user's cache folder."""
    return cache_folder()
