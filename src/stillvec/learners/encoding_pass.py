"""One pass over the corpus for many learners: a frozen plan, a state that a checkpoint holds, and the loop.

Specs that are equal share one accumulator. Words that the corpus lacks are read alone, as texts of one word.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from stillvec.corpus.text_chunk import START, StreamPosition
from stillvec.encoding import (
    NO_TEXT,
    BatchConsumer,
    Encoded,
    PassProgress,
    TextChunk,
    TextSize,
    encode_batches,
    list_layers,
    run_pass,
)
from stillvec.encoding.batch_loader import BatchBudget, BatchBuilder, BatchLoader, Bookmark
from stillvec.encoding.context_store import StoreLocation, check_room
from stillvec.learners.accumulators import (
    Accumulator,
    AccumulatorSpec,
    ContextsOnlySpec,
    HasLoss,
    HasTotals,
    Learner,
    OwnTextsSpec,
    TemplateSpec,
    TextSource,
    can_checkpoint,
    chunk_texts,
    load_state,
    save_state,
)
from stillvec.learners.partition import Partition
from stillvec.learners.stored_contexts import ContextAccumulator, ContextStoreWriter, check_contexts_found, count_rows
from stillvec.learners.text_sample import estimate_size
from stillvec.progress import Phase
from stillvec.statistics import N_CONTEXTS, N_ISOLATED, STORED, Statistics
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary, WordMatcher, WordSpans

CORPUS = "the corpus"
PARAGRAPHS = "the paragraphs"
WITHOUT_CONTEXT = "words without a context"
Arrays = dict[str, NDArray[Any]]
PassEvents = Iterator[tuple[str, PassProgress]]  # what is read, how far
WordCounts = dict[str, NDArray[np.int64]]  # how often words were read in the corpus; partitions add up


class OwnTexts(NamedTuple):
    """Texts beside the corpus."""

    spec: OwnTextsSpec  # that makes them
    readers: list[AccumulatorSpec]


@dataclass(frozen=True)
class PassPlan:
    """What one pass computes."""

    learners: Mapping[str, Learner]
    vocabulary: Vocabulary
    known: Vocabulary | None = None  # words of an earlier result, whose own texts were read then

    @cached_property
    def specs(self) -> tuple[AccumulatorSpec, ...]:
        """The specs of all learners, without duplicates."""
        return tuple(dict.fromkeys(spec for learner in self.learners.values() for spec in learner.specs().values()))

    def reads(self, source: TextSource) -> bool:
        """Whether any spec reads this kind of text."""
        return any(spec.source is source for spec in self.specs)

    @cached_property
    def own_texts(self) -> dict[str, OwnTexts]:
        """What is read beside the corpus, by the key of its stage; a template of several specs is read once for all."""
        texts: dict[str, OwnTexts] = {}
        for number, spec in enumerate(self.specs):
            if isinstance(spec, TemplateSpec):
                for template in spec.templates:
                    part = OwnTexts(replace(cast(Any, spec), templates=(template,)), [])
                    texts.setdefault(f"template {template}", part).readers.append(spec)
            elif isinstance(spec, OwnTextsSpec):
                texts[f"own-{number}"] = OwnTexts(spec, [spec])
        return texts

    @cached_property
    def matcher(self) -> WordMatcher:
        """Finds the words of texts, for the selection of sentences and for batches."""
        return WordMatcher(self.vocabulary)

    @cached_property
    def new_words(self) -> NDArray[np.bool_]:
        """Which words no earlier result has (V,)."""
        if self.known is None:
            return np.ones(len(self.vocabulary), bool)
        return self.vocabulary.rows_in(self.known) < 0

    def make_accumulators(self, teacher: Teacher) -> dict[AccumulatorSpec, Accumulator]:
        """Empty accumulators; raises an error if the teacher lacks a layer, or a spec cannot be satisfied."""
        return {spec: spec.make_accumulator(teacher, self.vocabulary) for spec in self.specs}


@dataclass
class StageState:
    """How far one stage of the reading is."""

    bookmark: Bookmark = field(default_factory=Bookmark)
    progress: PassProgress = field(default_factory=PassProgress)
    finished: bool = False

    @property
    def size(self) -> TextSize:
        """Of what was read."""
        return TextSize(self.progress.n_tokens, self.progress.n_sentences)

    def total(self, expected: TextSize | None) -> TextSize | None:
        """Of what will have been read at the end; `expected` is the estimate before the first text was prepared."""
        estimate = self.bookmark.total if self.bookmark.total.n_texts else expected
        if self.finished or estimate is None:
            return self.size if self.finished else None
        return TextSize(*map(max, self.size, estimate))

    def to_array(self) -> NDArray[np.float64]:
        mark, progress = self.bookmark, self.progress
        counts = (mark.chunks, mark.batches, progress.n_sentences, progress.n_words, progress.n_tokens)
        return np.array([*counts, progress.seconds, self.finished], float)

    @classmethod
    def from_array(cls, row: NDArray[np.float64]) -> StageState:
        chunks, batches, n_sentences, n_words, n_tokens = map(int, row[:5])
        progress = PassProgress(n_sentences, n_words, n_tokens, float(row[5]))
        return cls(Bookmark(chunks, batches, TextSize(n_tokens, n_sentences)), progress, bool(row[6]))


@dataclass
class PassState:
    """Everything that changes during a pass, and all that a checkpoint holds."""

    accumulators: dict[AccumulatorSpec, Accumulator]
    n_contexts: NDArray[np.int64]  # (V,) how often each word was read in the corpus
    stages: dict[str, StageState] = field(default_factory=dict)
    missing: dict[str, NDArray[np.bool_]] = field(default_factory=dict)  # words read alone, of paragraph stages
    totals: dict[AccumulatorSpec, Arrays] = field(default_factory=dict)  # of the corpus, before words were read alone

    @property
    def can_checkpoint(self) -> bool:
        return all(map(can_checkpoint, self.accumulators.values()))

    def to_arrays(self) -> Arrays:
        """Not copied: to be written before the next batch."""
        arrays: Arrays = {"contexts": self.n_contexts}
        arrays |= {f"way/{key}": stage.to_array() for key, stage in self.stages.items()}
        arrays |= {f"lacking/{key}": mask for key, mask in self.missing.items()}
        for number, (spec, accumulator) in enumerate(self.accumulators.items()):
            for kind, fields in (("part", save_state(accumulator)), ("totals", self.totals.get(spec, {}))):
                arrays |= {f"{kind}/{number}/{name}": array for name, array in fields.items()}
        return arrays

    def add(self, stages: Mapping[str, PassProgress], position: StreamPosition = START) -> None:
        """Add what another process read; `position` is that of all processes in the stream."""
        for key, more in stages.items():
            state = self.stages.setdefault(key, StageState())
            state.progress = state.progress.plus(more)
            if position.done:
                state.bookmark.total = state.size.scale(position.total / position.done)

    def finish(self) -> None:
        """Everything that was begun is read."""
        for state in self.stages.values():
            state.finished = True

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a checkpoint: the pass is then given the same texts, and skips those that were read."""
        self.n_contexts[:] = arrays["contexts"]
        self.stages = read_stages(arrays)
        self.missing = {key: np.array(mask) for key, mask in _with_prefix("lacking", arrays).items()}
        for number, (spec, accumulator) in enumerate(self.accumulators.items()):
            load_state(accumulator, _with_prefix(f"part/{number}", arrays))
            if totals := _with_prefix(f"totals/{number}", arrays):
                self.totals[spec] = {name: np.array(array) for name, array in totals.items()}


class _Stage(NamedTuple):
    """Texts that some accumulators read."""

    key: str
    label: str
    phase: Phase
    chunks: Iterable[TextChunk]
    accumulators: Sequence[BatchConsumer]


class EncodingPass:
    """Runs a plan with a teacher; `statistics_of` then gives each learner its statistics.

    `store` is where contexts are stored. Where several processes read one corpus, `partition` is the part of this one,
    and `all_reduce` sums word counts over all of them. A `loader` that is given is used and not closed.
    """

    def __init__(
        self,
        plan: PassPlan,
        teacher: Teacher,
        *,
        store: StoreLocation | None = None,
        partition: Partition | None = None,
        all_reduce: Callable[[WordCounts], WordCounts] = dict,
        loader: BatchLoader | None = None,
    ) -> None:
        self.plan, self.teacher, self.vocabulary = plan, teacher, plan.vocabulary
        self.accumulators = plan.make_accumulators(teacher)
        self.state = PassState(self.accumulators, np.zeros(len(self.vocabulary), np.int64))
        self.finished = False  # everything was read
        self.phase = Phase.CORPUS  # what is being read
        self.n_missing_words = 0  # new words that no process read in the corpus
        self._isolated = np.zeros(len(self.vocabulary), np.int64)  # which words were read alone
        self._expected: dict[str, TextSize] | None = None  # sizes of stages, by key; None: not estimated yet
        self._partition = partition or Partition()
        self._all_reduce = all_reduce
        self._loader = loader
        if store is not None:
            for writer in self.context_writers:
                writer.open(store)
            if self.bytes_needed:
                check_room(store.folder, self.bytes_needed - store.bytes_written)
        # stored by an earlier run: they need not read the corpus again
        self._complete = {writer.spec for writer in self.context_writers if writer.contexts is not None}

    @property
    def context_writers(self) -> list[ContextStoreWriter]:
        return [writer for writer in self.accumulators.values() if isinstance(writer, ContextStoreWriter)]

    def _readers(self, source: TextSource) -> dict[AccumulatorSpec, Accumulator]:
        items = self.accumulators.items()
        return {spec: reader for spec, reader in items if spec.source is source and spec not in self._complete}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a checkpoint; ValueError if it has a stage that this pass does not have."""
        stages = {"corpus", "paragraphs", "alone", *self.plan.own_texts}
        unknown = read_stages(arrays).keys() - stages - {f"lacking-{n}" for n in range(len(self.accumulators))}
        if unknown:
            raise ValueError(f"unknown stages: {', '.join(sorted(unknown))}")
        self.state.restore(arrays)

    def reads(self, source: TextSource) -> bool:
        """Whether any accumulator still has to read this kind of text."""
        return bool(self._readers(source))

    @property
    def bytes_needed(self) -> int:
        """About what the pass will write to disk."""
        return sum(writer.bytes_needed() for writer in self.context_writers)

    @property
    def losses(self) -> list[float]:
        """Current losses of models that train during the pass."""
        losses = [reader.loss for reader in self.accumulators.values() if isinstance(reader, HasLoss)]
        return [loss for loss in losses if not math.isnan(loss)]

    def store_path(self, name: str) -> Path | None:
        """The folder of the contexts that the learner of that name trains on."""
        accumulators = (self.accumulators[spec] for spec in self.plan.learners[name].specs().values())
        stores = (writer.contexts for writer in accumulators if isinstance(writer, ContextStoreWriter))
        return next((store.path for store in stores if store is not None and store.path is not None), None)

    def run(
        self, sentences: Iterable[TextChunk], budget: BatchBudget | None = None, paragraphs: Iterable[TextChunk] = ()
    ) -> PassEvents:
        """Read the corpus, words it lacks, then each spec's own texts."""
        return self._read(chain(self._corpus_stages(sentences, paragraphs), self._other_stages()), budget)

    def read_corpus(
        self, sentences: Iterable[TextChunk], budget: BatchBudget | None = None, paragraphs: Iterable[TextChunk] = ()
    ) -> PassEvents:
        """Read only the corpus, or a part of it: `word_counts` are then summed for `read_missing_words`."""
        return self._read(self._corpus_stages(sentences, paragraphs), budget)

    def read_missing_words(self, counts: WordCounts, budget: BatchBudget | None = None) -> PassEvents:
        """Read everything but the corpus, in which others counted these words."""
        return self._read(self._other_stages(counts), budget)

    def _read(self, stages: Iterable[_Stage], budget: BatchBudget | None) -> PassEvents:
        """The pass: each stage's chunks become batches, the teacher reads them, the accumulators are updated."""
        event = None
        try:
            with self._open_loader(budget) as loader:
                for stage in stages:
                    state, self.phase = self.state.stages.setdefault(stage.key, StageState()), stage.phase
                    if state.progress.n_sentences:  # an earlier run got this far
                        yield (event := (stage.label, state.progress))
                    if state.finished:
                        continue
                    read = partial(encode_batches, self.teacher, layers=list_layers(stage.accumulators))
                    encoded = loader.convert(read, stage.chunks, state.bookmark)
                    for progress in run_pass(encoded, stage.accumulators, state.progress):
                        state.progress = progress
                        yield (event := (stage.label, state.progress))
                    state.finished = True
            self.finished = True
            if event is not None:  # once more, for a last checkpoint before contexts are closed
                yield event
            for writer in self.context_writers:
                writer.close()
        except BaseException:
            for writer in self.context_writers:
                writer.abandon()
            raise

    def _open_loader(self, budget: BatchBudget | None) -> AbstractContextManager[BatchLoader]:
        if self._loader is not None:
            return nullcontext(self._loader)
        return make_loader(self.teacher, self.plan.matcher, budget or BatchBudget.for_teacher(self.teacher))

    def _corpus_stages(self, sentences: Iterable[TextChunk], paragraphs: Iterable[TextChunk]) -> Iterator[_Stage]:
        if readers := self._readers(TextSource.SENTENCES):
            counter = _ContextCounter(self.state.n_contexts)
            yield _Stage("corpus", CORPUS, Phase.CORPUS, sentences, [*readers.values(), counter])
        if readers := self._readers(TextSource.PARAGRAPHS):
            yield _Stage("paragraphs", PARAGRAPHS, Phase.PARAGRAPHS, paragraphs, [*readers.values()])

    def _other_stages(self, counts: WordCounts | None = None) -> Iterator[_Stage]:
        """Words that the corpus lacks, read alone, and the specs' own texts."""
        counts = self._all_reduce(self.word_counts()) if counts is None else counts
        new = self.plan.new_words
        if readers := self._readers(TextSource.SENTENCES):
            missing = (counts["contexts"] == 0) & new
            self.n_missing_words = int(missing.sum())
            self._isolated[:] = self._partition.select_words(missing)
            if not self.state.totals and counts["contexts"].any() and missing.any():
                totals = {spec: reader.totals() for spec, reader in readers.items() if isinstance(reader, HasTotals)}
                self.state.totals = copy.deepcopy(totals)  # the totals alone: all arrays may be gigabytes on a GPU
            if alone := [reader for spec, reader in readers.items() if _reads_isolated(spec, counts["contexts"])]:
                words = self._single_words(self._isolated)
                yield _Stage("alone", WITHOUT_CONTEXT, Phase.ISOLATED, words, alone)
        for number, spec in self._paragraph_readers():
            accumulator, n_contexts = cast(ContextAccumulator, self.accumulators[spec]), counts[f"part-{number}"]
            if counts["paragraphs"].any():
                check_contexts_found(accumulator.spec, n_contexts)
            key = f"lacking-{number}"
            missing = self.state.missing.setdefault(key, self._partition.select_words((n_contexts == 0) & new))
            yield _Stage(key, WITHOUT_CONTEXT, Phase.ISOLATED, self._single_words(missing), [accumulator])
        for key, (own, specs) in self.plan.own_texts.items():
            texts = self._partition.select_chunks(_keep_words(own.texts(self.vocabulary), new))
            yield _Stage(key, own.label, own.phase, texts, [self.accumulators[spec] for spec in specs])

    def expect_texts(self, paragraphs: TextSize = NO_TEXT) -> None:
        """Estimate what will be read after the corpus, so that `total_size` includes it from the beginning."""
        new, share = self.plan.new_words, self._partition.other_share

        def estimate(texts: Callable[[Vocabulary], Iterable[TextChunk]], chosen: NDArray[np.bool_]) -> TextSize:
            return estimate_size(texts, self.vocabulary, chosen, self.teacher.tokenizer).scale(share)

        isolated = estimate(lambda words: chunk_texts(enumerate(words)), (self.vocabulary.counts == 0) & new)
        sizes = {f"lacking-{number}": isolated for number, _ in self._paragraph_readers()}
        if readers := self._readers(TextSource.SENTENCES):
            reads_isolated = any(_reads_isolated(spec, self.vocabulary.counts) for spec in readers)
            sizes |= {"alone": isolated} if reads_isolated else {}
            sizes |= {"paragraphs": paragraphs} if paragraphs.n_texts else {}
        sizes |= {key: estimate(own.texts, new) for key, (own, _) in self.plan.own_texts.items()}
        self._expected = sizes

    @property
    def size(self) -> TextSize:
        """Of what was read so far, in this run and in the one that it continues."""
        return TextSize.sum(stage.size for stage in self.state.stages.values())

    @property
    def total_size(self) -> TextSize | None:
        """Of all that will be read: estimated until the last text is prepared, None before the first one is."""
        stages, expected = self.state.stages, self._expected
        if expected is None or not stages:
            return None
        totals = [stage.total(expected.get(key)) for key, stage in stages.items()]
        totals += [size for key, size in expected.items() if key not in stages]
        return None if None in totals else TextSize.sum(total for total in totals if total is not None)

    def _paragraph_readers(self) -> Iterator[tuple[int, AccumulatorSpec]]:
        readers = self._readers(TextSource.PARAGRAPHS)
        return ((number, spec) for number, spec in enumerate(self.accumulators) if spec in readers)

    def word_counts(self) -> WordCounts:
        """How often words were read: in sentences, and by each spec that reads paragraphs, which may skip some."""
        n_paragraphs = self.state.stages.get("paragraphs", StageState()).progress.n_sentences
        counts: WordCounts = {"contexts": self.state.n_contexts, "paragraphs": np.array([n_paragraphs])}
        for number, spec in self._paragraph_readers():
            counts[f"part-{number}"] = cast(ContextAccumulator, self.accumulators[spec]).n_contexts
        return counts

    def _single_words(self, chosen: NDArray[Any]) -> Iterator[TextChunk]:
        return chunk_texts((row, self.vocabulary.words[row]) for row in np.flatnonzero(chosen).tolist())

    def statistics_of(
        self, name: str, merged: Mapping[AccumulatorSpec, Statistics] | None = None
    ) -> dict[str, Statistics]:
        """The statistics of the learner of that name, by spec; `merged` are those of several processes."""
        merged = merged or {}
        specs = self.plan.learners[name].specs()
        return {label: merged[spec] if spec in merged else self.statistics(spec) for label, spec in specs.items()}

    def statistics(self, spec: AccumulatorSpec) -> Statistics:
        """What was accumulated for a spec."""
        arrays = self.accumulators[spec].arrays() | self.state.totals.get(spec, {})
        if spec.source is not TextSource.OWN_TEXTS and not any(name.startswith(STORED) for name in arrays):
            arrays |= {N_CONTEXTS: self.state.n_contexts, N_ISOLATED: self._isolated}
        return Statistics(self.vocabulary, arrays)


def _reads_isolated(spec: AccumulatorSpec, counts: NDArray[Any]) -> bool:
    """Whether words that the corpus lacks are read alone for a spec; without a corpus they are for all."""
    return not (isinstance(spec, ContextsOnlySpec) and spec.contexts_only and counts.any())


def read_stages(arrays: Mapping[str, NDArray[Any]]) -> dict[str, StageState]:
    """How far each stage is, in the arrays of a checkpoint."""
    return {key: StageState.from_array(row) for key, row in _with_prefix("way", arrays).items()}


def make_loader(teacher: Teacher, matcher: WordMatcher, budget: BatchBudget) -> BatchLoader:
    return BatchLoader(BatchBuilder.for_teacher(teacher, matcher, budget), budget.workers)


def _with_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{prefix}/")}


class _ContextCounter:
    """Counts the words of the vocabulary."""

    layers: tuple[int, ...] = ()

    def __init__(self, n_contexts: NDArray[np.int64]) -> None:
        self.n_contexts = n_contexts

    def update(self, encoded: Encoded) -> None:
        self.n_contexts += count_rows(encoded.batch.word_id, len(self.n_contexts))


def _keep_words(chunks: Iterable[TextChunk], chosen: NDArray[np.bool_]) -> Iterator[TextChunk]:
    """Of texts that each stand for one word, those whose word is chosen."""
    for chunk in chunks:
        spans = chunk.spans
        if spans is None or chosen[spans.ids].all():
            yield chunk
            continue
        rows = np.flatnonzero(chosen[spans.ids])
        texts = [chunk.texts[number] for number in spans.text_index[rows]]
        numbers = np.arange(len(rows), dtype=np.int32)
        yield TextChunk(texts, WordSpans(spans.ids[rows], spans.starts[rows], spans.ends[rows], numbers))
