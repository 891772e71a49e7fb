"""One encoding, many learners: parts that are equal listen once, words the corpus lacks are read alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stillvec.encoding import (
    BatchBudget,
    BatchBuilder,
    BatchConsumer,
    BatchLoader,
    Bookmark,
    Encoded,
    PassProgress,
    StoreLocation,
    TextChunk,
    check_room,
    run_pass,
)
from stillvec.learners.accumulator_state import can_remember, recall, remembered
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, Learner, OwnTextsSpec, TextSource, chunk_texts
from stillvec.learners.partition import Partition
from stillvec.learners.stored_contexts import ContextAccumulator, ContextStoreWriter, check_found_contexts
from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import N_CONTEXTS, N_ISOLATED, STORED
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary, WordMatcher, WordSpans

CORPUS = "the corpus"
PARAGRAPHS = "the paragraphs"
WITHOUT = "words without a context"
Met = dict[str, NDArray[np.int64]]  # how often words were met in the corpus; those of several shares are added


class EncodingPass:
    """Learners, a teacher and a vocabulary; `read` drives the teacher, `heard` gives each learner its statistics."""

    def __init__(
        self,
        learners: Mapping[str, Learner],
        teacher: Teacher,
        vocabulary: Vocabulary,
        known: Vocabulary | None = None,
        desk: StoreLocation | None = None,
    ) -> None:
        self.learners = learners
        self.teacher = teacher
        self.vocabulary = vocabulary
        self.known = known  # words of an earlier result, whose own texts were read then
        self.contexts = np.zeros(len(vocabulary), np.int64)  # how often each word was read in the corpus
        parts: dict[AccumulatorSpec, None] = {
            part: None for learner in learners.values() for part in learner.specs().values()
        }
        self._listeners: dict[AccumulatorSpec, Accumulator] = {
            part: part.make_accumulator(teacher, vocabulary) for part in parts
        }
        if desk is not None:
            for listener in self._keepers:
                listener.open(desk)
            if self.bytes_needed:
                check_room(desk.folder, self.bytes_needed - desk.there)
        self.over = False  # everything was read
        self._alone = np.zeros(len(vocabulary), np.int64)  # which words were read alone
        self._lacking: dict[str, NDArray[np.bool_]] = {}  # words that a listener to paragraphs is read alone
        self._ways: dict[str, _ReadingState] = {}  # how far each reading is
        self._totals: dict[AccumulatorSpec, dict[str, NDArray[Any]]] = {}  # of the corpus, before words were read alone
        self.preparer: BatchLoader | None = None  # one that was there before, and stays
        self.share = Partition()  # where several read one corpus: ours,
        self.agree: Callable[[Met], Met] = lambda met: met  # what all of them met,
        self.lacking = 0  # words that none of them met,
        self.words_met: Met = {}
        self.told: dict[AccumulatorSpec, Statistics] = {}  # and what they heard together, once it is known

    @property
    def listeners(self) -> list[Accumulator]:
        return [*self._listeners.values()]

    @property
    def heard_by(self) -> Mapping[AccumulatorSpec, Accumulator]:
        """Every part with its listener."""
        return self._listeners

    @property
    def _keepers(self) -> list[ContextStoreWriter]:
        return [listener for listener in self._listeners.values() if isinstance(listener, ContextStoreWriter)]

    def _hearing(self, source: TextSource) -> list[Accumulator]:
        """Who listens to the corpus read by sentences, or by paragraphs, and has not yet what it wants."""
        return [
            listener
            for part, listener in self._listeners.items()
            if part.source is source and getattr(listener, "kept", None) is None
        ]

    @property
    def needs_corpus(self) -> bool:
        """Whether anyone wants to hear it sentence by sentence."""
        return bool(self._hearing(TextSource.SENTENCES))

    @property
    def needs_paragraphs(self) -> bool:
        return bool(self._hearing(TextSource.PARAGRAPHS))

    @property
    def bytes_needed(self) -> int:
        """What will be written to disk during the pass, about."""
        return sum(keeper.bytes_needed() for keeper in self._keepers)

    @property
    def losses(self) -> list[float]:
        """Of those who train in the stream, lately."""
        watches = (getattr(listener, "watch", None) for listener in self._listeners.values())
        return [watch.loss for watch in watches if watch is not None and not math.isnan(watch.loss)]

    @property
    def can_remember(self) -> bool:
        """Whether all who listen can go on in the middle of a pass."""
        return all(map(can_remember, self._listeners.values()))

    def remember(self) -> dict[str, NDArray[Any]]:
        """All that a lesson holds between two batches, not copied: to be written down before the next one."""
        kept: dict[str, NDArray[Any]] = {"contexts": self.contexts}
        kept |= {f"way/{key}": way.written() for key, way in self._ways.items()}
        kept |= {f"lacking/{key}": mask for key, mask in self._lacking.items()}
        for number, (part, listener) in enumerate(self._listeners.items()):
            for kind, arrays in (("part", remembered(listener)), ("totals", self._totals.get(part, {}))):
                kept |= {f"{kind}/{number}/{name}": array for name, array in arrays.items()}
        return kept

    def recall(self, kept: Mapping[str, NDArray[Any]]) -> None:
        """Go on from there; to be called before `read`, which is given the same texts and passes over those read."""
        self.contexts[:] = kept["contexts"]
        self._ways = {key: _ReadingState.read(row) for key, row in _under("way", kept).items()}
        self._lacking = {key: np.array(mask) for key, mask in _under("lacking", kept).items()}
        for number, (part, listener) in enumerate(self._listeners.items()):
            recall(listener, _under(f"part/{number}", kept))
            totals = _under(f"totals/{number}", kept)
            if totals:
                self._totals[part] = {name: np.array(array) for name, array in totals.items()}

    def kept_at(self, name: str) -> Path | None:
        """The folder of the contexts that the learner of that name trains on."""
        mine = dict.fromkeys(self.learners[name].specs().values())
        found = (listener for part, listener in self._listeners.items() if part in mine)
        places = (each.kept.path for each in found if isinstance(each, ContextStoreWriter) and each.kept is not None)
        return next((place for place in places if place is not None), None)

    def read(
        self, corpus: Iterable[TextChunk], load: BatchBudget | None = None, paragraphs: Iterable[TextChunk] = ()
    ) -> Iterator[tuple[str, PassProgress]]:
        """The corpus for those who listen to it, then each part's own texts; (what is being read, how far)."""

        def both(ready: BatchLoader) -> Iterator[tuple[str, PassProgress]]:
            yield from self._hear(ready, corpus, paragraphs)
            yield from self._complete(ready, self.agree(self.met()))

        return self._through(both, load)

    def hear(
        self, corpus: Iterable[TextChunk], load: BatchBudget | None = None, paragraphs: Iterable[TextChunk] = ()
    ) -> Iterator[tuple[str, PassProgress]]:
        """Only the corpus, or some of it: `words_met` then says what was met there, for those who `complete`."""

        def only(ready: BatchLoader) -> Iterator[tuple[str, PassProgress]]:
            yield from self._hear(ready, corpus, paragraphs)
            self.words_met = self.met()

        return self._through(only, load)

    def complete(self, met: Met, load: BatchBudget | None = None) -> Iterator[tuple[str, PassProgress]]:
        """All but the corpus, which others heard, and met these words."""
        return self._through(lambda ready: self._complete(ready, met), load)

    def _through(
        self, reading: Callable[[BatchLoader], Iterator[tuple[str, PassProgress]]], load: BatchBudget | None
    ) -> Iterator[tuple[str, PassProgress]]:
        preparing: AbstractContextManager[BatchLoader] = (
            batch_loader(self.teacher, self.vocabulary, load or BatchBudget.for_teacher(self.teacher))
            if self.preparer is None
            else nullcontext(self.preparer)
        )
        try:
            last = None
            with preparing as ready:
                for last in reading(ready):
                    yield last
            self.over = True
            if last is not None:  # once more, before contexts are put away: the last moment to remember
                yield last
            for keeper in self._keepers:
                keeper.close()
        except BaseException:
            for keeper in self._keepers:
                keeper.abandon()
            raise

    def _hear(
        self, ready: BatchLoader, corpus: Iterable[TextChunk], paragraphs: Iterable[TextChunk]
    ) -> Iterator[tuple[str, PassProgress]]:
        """The corpus, or a share of it."""
        if hearing := self._hearing(TextSource.SENTENCES):
            yield from self._drive("corpus", CORPUS, ready, corpus, [*hearing, _ContextCounter(self.contexts)])
        if by_paragraph := self._hearing(TextSource.PARAGRAPHS):
            yield from self._drive("paragraphs", PARAGRAPHS, ready, paragraphs, by_paragraph)

    def met(self) -> Met:
        """How often words were met: in sentences, and by each of those who hear paragraphs and may leave some out."""
        read = self._ways.get("paragraphs", _ReadingState()).progress.n_sentences
        found: Met = {"contexts": self.contexts, "paragraphs": np.array([read])}
        every = [*self._listeners.values()]
        for each in self._hearing(TextSource.PARAGRAPHS):
            found[f"part-{every.index(each)}"] = cast(ContextAccumulator, each).met
        return found

    def _complete(self, ready: BatchLoader, met: Met) -> Iterator[tuple[str, PassProgress]]:
        """Words that nobody met, read alone, and the texts that parts have of their own."""
        new = self._new()
        if hearing := self._hearing(TextSource.SENTENCES):
            lacking = (met["contexts"] == 0) & new
            self.lacking = int((met["contexts"] == 0).sum())
            self._alone[:] = self.share.rows(lacking)
            if not self._totals and met["contexts"].any() and lacking.any():
                self._totals = {part: _totals(each) for part, each in self._listeners.items() if each in hearing}
            yield from self._drive("alone", WITHOUT, ready, self._by_themselves(self._alone), hearing)
        every = [*self._listeners.values()]
        for each in (cast(ContextAccumulator, listener) for listener in self._hearing(TextSource.PARAGRAPHS)):
            number = every.index(each)
            if met["paragraphs"].any():
                check_found_contexts(each.part, met[f"part-{number}"])
            key = f"lacking-{number}"
            mine = self._lacking.setdefault(key, self.share.rows((met[f"part-{number}"] == 0) & new))
            yield from self._drive(key, WITHOUT, ready, self._by_themselves(mine), [each])
        for number, (part, heard) in enumerate(self._listeners.items()):
            if isinstance(part, OwnTextsSpec):
                texts = self.share.dealt(_only(part.texts(self.vocabulary), new))
                yield from self._drive(f"own-{number}", part.label, ready, texts, [heard])

    def _by_themselves(self, wanted: NDArray[Any]) -> Iterator[TextChunk]:
        return chunk_texts((row, self.vocabulary.words[row]) for row in np.flatnonzero(wanted).tolist())

    def _new(self) -> NDArray[np.bool_]:
        """The words that no earlier result has."""
        if self.known is None:
            return np.ones(len(self.vocabulary), bool)
        return self.vocabulary.rows_in(self.known) < 0

    def _drive(
        self, key: str, label: str, ready: BatchLoader, texts: Iterable[TextChunk], listeners: Sequence[BatchConsumer]
    ) -> Iterator[tuple[str, PassProgress]]:
        """One reading, from where it was left: first it tells how far that was."""
        way = self._ways.setdefault(key, _ReadingState())
        if way.progress.n_sentences:
            yield label, way.progress
        if way.over:
            return
        for progress in run_pass(self.teacher, ready.batches(texts, way.mark), listeners, way.progress):
            way.progress = replace(progress, corpus_position=way.mark.corpus_position or progress.n_words)
            yield label, way.progress
        way.over = True

    def statistics_of(self, name: str) -> dict[str, Statistics]:
        """What the learner of that name listened for, by part."""
        return {label: self.statistics(part) for label, part in self.learners[name].specs().items()}

    def statistics(self, part: AccumulatorSpec) -> Statistics:
        """What a part heard."""
        if part in self.told:
            return self.told[part]
        arrays = self._listeners[part].arrays() | self._totals.get(part, {})
        if not isinstance(part, OwnTextsSpec) and not any(name.startswith(STORED) for name in arrays):
            arrays |= {N_CONTEXTS: self.contexts, N_ISOLATED: self._alone}
        return Statistics(self.vocabulary, arrays)


def batch_loader(teacher: Teacher, vocabulary: Vocabulary, load: BatchBudget) -> BatchLoader:
    """Who makes batches for the lessons of a teacher and a vocabulary."""
    return BatchLoader(BatchBuilder.for_teacher(teacher, WordMatcher(vocabulary), load), load.workers)


@dataclass
class _ReadingState:
    """How far a reading is."""

    mark: Bookmark = field(default_factory=Bookmark)
    progress: PassProgress = field(default_factory=PassProgress)
    over: bool = False

    def written(self) -> NDArray[np.float64]:
        mark, far = self.mark, self.progress
        return np.array(
            [mark.chunks, mark.batches, far.n_sentences, far.n_words, far.n_tokens, far.seconds, self.over], float
        )

    @classmethod
    def read(cls, row: NDArray[np.float64]) -> _ReadingState:
        chunks, batches, sentences, words, pieces = map(int, row[:5])
        far = PassProgress(sentences, words, pieces, float(row[5]), corpus_position=words)  # until the next batch
        return cls(Bookmark(chunks, batches), far, bool(row[6]))


def _under(kind: str, kept: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """What stands under a heading."""
    return {name[len(kind) + 1 :]: array for name, array in kept.items() if name.startswith(f"{kind}/")}


def _totals(heard: Accumulator) -> dict[str, NDArray[Any]]:
    """Of those that have some, and only these: all that was heard may be gigabytes on a GPU."""
    own: Callable[[], dict[str, NDArray[Any]]] = getattr(heard, "totals", dict)
    return {name: array.copy() for name, array in own().items()}


class _ContextCounter:
    layers: tuple[int, ...] = ()

    def __init__(self, contexts: NDArray[np.int64]) -> None:
        self.contexts = contexts

    def update(self, encoded: Encoded) -> None:
        ids = encoded.batch.word_id
        self.contexts += np.bincount(ids[ids >= 0], minlength=len(self.contexts))


def _only(chunks: Iterable[TextChunk], wanted: NDArray[np.bool_]) -> Iterator[TextChunk]:
    """The texts, each standing for one word, whose word is wanted."""
    for marked in chunks:
        found = marked.spans
        if found is None or wanted[found.ids].all():
            yield marked
            continue
        stay = np.flatnonzero(wanted[found.ids])
        every = np.arange(len(stay), dtype=np.int32)
        texts = [marked.texts[number] for number in found.text[stay]]
        yield TextChunk(texts, WordSpans(found.ids[stay], found.starts[stay], found.ends[stay], every))
