"""One encoding, many learners: parts that are equal listen once, words the corpus lacks are read alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stillvec.encoding import (
    Batch,
    Desk,
    Encoded,
    Listener,
    Load,
    Marked,
    Preparation,
    Preparer,
    Progress,
    check_room,
    encode,
)
from stillvec.learners.kept import ContextKeeper, ContextListener, check_heard
from stillvec.learners.listening import Learner, Part, PartListener, in_chunks
from stillvec.statistics import Statistics
from stillvec.statistics.statistics import ALONE, KEPT, READ
from stillvec.teachers import Teacher
from stillvec.vocabulary import Found, Vocabulary, WordFinder

CORPUS = "the corpus"
PARAGRAPHS = "the paragraphs"
WITHOUT = "words without a context"


class Lesson:
    """Learners, a teacher and a vocabulary; `read` drives the teacher, `heard` gives each learner its statistics."""

    def __init__(
        self,
        learners: Mapping[str, Learner],
        teacher: Teacher,
        vocabulary: Vocabulary,
        known: Vocabulary | None = None,
        desk: Desk | None = None,
    ) -> None:
        self.learners = learners
        self.teacher = teacher
        self.vocabulary = vocabulary
        self.known = known  # words of an earlier result, whose own texts were read then
        self.contexts = np.zeros(len(vocabulary), np.int64)  # how often each word was read in the corpus
        parts: dict[Part, None] = {part: None for learner in learners.values() for part in learner.parts().values()}
        self._listeners: dict[Part, PartListener] = {part: part.listen(teacher, vocabulary) for part in parts}
        if desk is not None:
            for listener in self._keepers:
                listener.open(desk)
            if self.bytes_needed:
                check_room(desk.folder, self.bytes_needed)
        self._alone = np.zeros(len(vocabulary), np.int64)  # which words were read alone
        self._totals: dict[Part, dict[str, NDArray[Any]]] = {}  # of the corpus, before words were read alone

    @property
    def _keepers(self) -> list[ContextKeeper]:
        return [listener for listener in self._listeners.values() if isinstance(listener, ContextKeeper)]

    def _hearing(self, unit: str) -> list[PartListener]:
        """Who listens to the corpus read by sentences, or by paragraphs, and has not yet what it wants."""
        return [
            listener
            for part, listener in self._listeners.items()
            if part.texts(self.vocabulary) is None
            and getattr(part, "reads", "sentence") == unit
            and getattr(listener, "kept", None) is None
        ]

    @property
    def needs_corpus(self) -> bool:
        """Whether anyone wants to hear it sentence by sentence."""
        return bool(self._hearing("sentence"))

    @property
    def needs_paragraphs(self) -> bool:
        return bool(self._hearing("paragraph"))

    @property
    def bytes_needed(self) -> int:
        """What will be written to disk during the pass, about."""
        return sum(keeper.bytes_needed() for keeper in self._keepers)

    @property
    def losses(self) -> list[float]:
        """Of those who train in the stream, lately."""
        watches = (getattr(listener, "watch", None) for listener in self._listeners.values())
        return [watch.loss for watch in watches if watch is not None and not math.isnan(watch.loss)]

    def kept_at(self, name: str) -> Path | None:
        """The folder of the contexts that the learner of that name trains on."""
        mine = dict.fromkeys(self.learners[name].parts().values())
        found = (listener for part, listener in self._listeners.items() if part in mine)
        places = (each.kept.path for each in found if isinstance(each, ContextKeeper) and each.kept is not None)
        return next((place for place in places if place is not None), None)

    def read(
        self, corpus: Iterable[Marked], load: Load | None = None, paragraphs: Iterable[Marked] = ()
    ) -> Iterator[tuple[str, Progress]]:
        """The corpus for those who listen to it, then each part's own texts; (what is being read, how far)."""
        try:
            yield from self._read(corpus, load, paragraphs)
            for keeper in self._keepers:
                keeper.close()
        except BaseException:
            for keeper in self._keepers:
                keeper.abandon()
            raise

    def _read(
        self, corpus: Iterable[Marked], load: Load | None, paragraphs: Iterable[Marked]
    ) -> Iterator[tuple[str, Progress]]:
        load = load or Load.for_device(self.teacher.device)
        preparation = Preparation.of(self.teacher, WordFinder(self.vocabulary), load)
        hearing, by_paragraph = self._hearing("sentence"), self._hearing("paragraph")
        new = self._new()
        with Preparer(preparation, load) as ready:
            if hearing:
                yield from self._drive(CORPUS, ready.batches(corpus), [*hearing, _Tally(self.contexts)])
                self._alone[:] = (self.contexts == 0) & new
                if self.contexts.any() and self._alone.any():
                    self._totals = {part: _totals(each) for part, each in self._listeners.items() if each in hearing}
                yield from self._drive(WITHOUT, ready.batches(self._by_themselves(self._alone)), hearing)
            if by_paragraph:
                yield from self._read_paragraphs(ready, paragraphs, by_paragraph, new)
            for part, heard in self._listeners.items():
                own = part.texts(self.vocabulary)
                if own is not None:
                    yield from self._drive(part.label, ready.batches(_only(own, new)), [heard])

    def _read_paragraphs(
        self, ready: Preparer, paragraphs: Iterable[Marked], listeners: list[PartListener], new: NDArray[np.bool_]
    ) -> Iterator[tuple[str, Progress]]:
        """Short paragraphs may be nothing to a listener: each is read alone the words that it lacks."""
        some = False
        for step in self._drive(PARAGRAPHS, ready.batches(paragraphs), listeners):
            some = True
            yield step
        for each in (cast(ContextListener, listener) for listener in listeners):
            if some:
                check_heard(each)
            yield from self._drive(WITHOUT, ready.batches(self._by_themselves((each.met == 0) & new)), [each])

    def _by_themselves(self, wanted: NDArray[Any]) -> Iterator[Marked]:
        return in_chunks((row, self.vocabulary.words[row]) for row in np.flatnonzero(wanted).tolist())

    def _new(self) -> NDArray[np.bool_]:
        """The words that no earlier result has."""
        if self.known is None:
            return np.ones(len(self.vocabulary), bool)
        return self.vocabulary.rows_in(self.known) < 0

    def _drive(
        self, label: str, batches: Iterable[Batch], listeners: Sequence[Listener]
    ) -> Iterator[tuple[str, Progress]]:
        for progress in encode(self.teacher, batches, listeners):
            yield label, progress

    def heard(self, name: str) -> dict[str, Statistics]:
        """What the learner of that name listened for, by part."""
        return {label: self._statistics(part) for label, part in self.learners[name].parts().items()}

    def _statistics(self, part: Part) -> Statistics:
        arrays = self._listeners[part].arrays() | self._totals.get(part, {})
        if part.texts(self.vocabulary) is None and not any(name.startswith(KEPT) for name in arrays):
            arrays |= {READ: self.contexts, ALONE: self._alone}
        return Statistics(self.vocabulary, arrays)


def _totals(heard: PartListener) -> dict[str, NDArray[Any]]:
    if isinstance(heard, ContextKeeper):
        return {}
    return {name: array.copy() for name, array in heard.arrays().items() if name.startswith("total:")}


class _Tally:
    layers: tuple[int, ...] = ()

    def __init__(self, contexts: NDArray[np.int64]) -> None:
        self.contexts = contexts

    def update(self, encoded: Encoded) -> None:
        ids = encoded.batch.word_id
        self.contexts += np.bincount(ids[ids >= 0], minlength=len(self.contexts))


def _only(chunks: Iterable[Marked], wanted: NDArray[np.bool_]) -> Iterator[Marked]:
    """The texts, each standing for one word, whose word is wanted."""
    for marked in chunks:
        found = marked.found
        if found is None or wanted[found.ids].all():
            yield marked
            continue
        stay = np.flatnonzero(wanted[found.ids])
        every = np.arange(len(stay), dtype=np.int32)
        texts = [marked.texts[number] for number in found.text[stay]]
        yield Marked(texts, Found(found.ids[stay], found.starts[stay], found.ends[stay], every))
