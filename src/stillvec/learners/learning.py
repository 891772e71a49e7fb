"""One encoding, many learners: parts that are equal listen once, words the corpus lacks are read alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from stillvec.encoding import Batch, Encoded, Listener, Load, Marked, Preparation, Preparer, Progress, encode
from stillvec.learners.listening import Learner, Part, PartListener, in_chunks
from stillvec.statistics import Statistics
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary, WordFinder


class Lesson:
    """Learners, a teacher and a vocabulary; `read` drives the teacher, `heard` gives each learner its statistics."""

    def __init__(self, learners: Mapping[str, Learner], teacher: Teacher, vocabulary: Vocabulary) -> None:
        self.learners = learners
        self.teacher = teacher
        self.vocabulary = vocabulary
        self.contexts = np.zeros(len(vocabulary), np.int64)  # how often each word was read in the corpus
        parts: dict[Part, None] = {part: None for learner in learners.values() for part in learner.parts().values()}
        self._listeners: dict[Part, PartListener] = {part: part.listen(teacher, vocabulary) for part in parts}

    @property
    def needs_corpus(self) -> bool:
        return any(part.texts(self.vocabulary) is None for part in self._listeners)

    def read(self, corpus: Iterable[Marked], load: Load | None = None) -> Iterator[tuple[str, Progress]]:
        """The corpus for those who listen to it, then each part's own texts; (what is being read, how far)."""
        load = load or Load.for_device(self.teacher.device)
        preparation = Preparation.of(self.teacher, WordFinder(self.vocabulary), load)
        hearing = [heard for part, heard in self._listeners.items() if part.texts(self.vocabulary) is None]
        with Preparer(preparation, load) as ready:
            if hearing:
                tally = _Tally(self.contexts)
                yield from self._drive("the corpus", ready.batches(corpus), [*hearing, tally])
                missing = np.flatnonzero(self.contexts == 0).tolist()
                alone = in_chunks((row, self.vocabulary.words[row]) for row in missing)
                yield from self._drive("words that the corpus lacks", ready.batches(alone), hearing)
            for part, heard in self._listeners.items():
                own = part.texts(self.vocabulary)
                if own is not None:
                    yield from self._drive(str(part), ready.batches(own), [heard])

    def _drive(self, label: str, batches: Iterable[Batch], listeners: list[Listener]) -> Iterator[tuple[str, Progress]]:
        for progress in encode(self.teacher, batches, listeners):
            yield label, progress

    def heard(self, name: str) -> dict[str, Statistics]:
        """What the learner of that name listened for, by part."""
        parts = self.learners[name].parts()
        return {label: Statistics(self.vocabulary, self._listeners[part].arrays()) for label, part in parts.items()}


class _Tally:
    layers: tuple[int, ...] = ()

    def __init__(self, contexts: np.ndarray) -> None:  # type: ignore[type-arg]
        self.contexts = contexts

    def update(self, encoded: Encoded) -> None:
        ids = encoded.batch.word_id
        self.contexts += np.bincount(ids[ids >= 0], minlength=len(self.contexts))
