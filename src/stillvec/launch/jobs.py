"""What a run gives its workers to do: stretches of the corpus that depend on the text and never on who reads them.

A job's statistics are a result of their own, and results are merged in the order of the jobs, two neighbours at a time.
So the numbers, to the last bit, do not depend on how many workers there are, or on which of them were lost on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from stillvec.encoding import Load, Marked
from stillvec.learners.learning import Met
from stillvec.learners.sharing import Share
from stillvec.pipeline.reading import Reading
from stillvec.statistics import Statistics, merge
from stillvec.statistics.statistics import Array
from stillvec.vocabulary import Vocabulary

Heard = dict[int, dict[str, Array]]  # the arrays of parts, by their number in the lesson
SENTENCES, PARAGRAPHS = "sentences", "paragraphs"
_RUN = 32  # chunks of a job, at most:
_JOBS = 64  # that many jobs, at least, if there are as many chunks
_BLOCK = 64 << 20  # bytes of files that one worker opens by itself
_BLOCKS = 16  # where there are as many; of fewer, the text is read here and sent
_ALONE = 8192  # words a job, where they are read alone


@dataclass(frozen=True)
class Job:
    """Chunks of text (references to them), or files that the worker opens itself; or all but the corpus."""

    name: str
    unit: str = SENTENCES
    chunks: Sequence[Any] = ()
    files: tuple[int, int] | None = None  # from and to, by number
    share: Share | None = None  # of what is read beside the corpus,
    met: Met | None = None  # where these words were met


def files_together(sizes: Sequence[int], block: int = _BLOCK) -> list[tuple[int, int]]:
    """Neighbouring files, by number, until they are a block."""
    found: list[tuple[int, int]] = []
    first, held = 1, 0
    for number, size in enumerate(sizes, 1):
        held += size
        if held >= block:
            found.append((first, number))
            first, held = number + 1, 0
    return found if first > len(sizes) else [*found, (first, len(sizes))]


def jobs_of(reading: Reading, unit: str, chunks: int, put: Callable[[Marked], Any]) -> Iterator[Job]:
    """The corpus as jobs. Chosen sentences are chosen here, once; files are opened by the workers if there are many."""
    corpus = reading.corpus
    if reading.contexts is None and corpus.is_files:
        blocks = files_together(corpus.sizes())
        if len(blocks) >= _BLOCKS:
            yield from (Job(f"{unit}-files-{block[0]}-{block[1]}", unit, files=block) for block in blocks)
            return
    together = max(1, min(_RUN, chunks // _JOBS))
    stream = iter(reading.chunks() if unit == SENTENCES else reading.paragraphs())
    number = 0
    while held := [put(chunk) for chunk in islice(stream, together)]:
        yield Job(f"{unit}-{number}-by-{together}", unit, held)
        number += len(held)


def rest_of(words: int, met: Met, *, in_order: bool) -> list[Job]:
    """What is read beside the corpus; where contexts are kept, by one, so that they stay in order."""
    count = 1 if in_order else max(1, -(-words // _ALONE))
    return [Job(f"rest-{number}-of-{count}", share=Share(number, count), met=met) for number in range(count)]


def chunks_about(characters: int, load: Load) -> int:
    """Of a corpus of so many characters."""
    return characters // (110 * load.sentences)


def merged(one: Heard, other: Heard) -> Heard:
    """Two neighbouring results as one, by the code that merges results; both have the words of one vocabulary."""
    same = Vocabulary(())  # whose rows need not be looked up
    both = {
        part: dict(merge(Statistics(same, one[part]), Statistics(same, other[part]), same).arrays)
        for part in one.keys() & other.keys()
    }
    return {**one, **other, **both}


class Tree:
    """Results merged as they are promised: neighbours first, in a shape that only their number decides."""

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self._merge = merge
        self._open: list[tuple[int, Any]] = []  # how many results are in each, fewer and fewer

    def add(self, result: Any) -> None:
        self._open.append((1, result))
        while len(self._open) > 1 and self._open[-1][0] == self._open[-2][0]:
            self._join()

    def whole(self) -> Any:
        """All of it; None where nothing was added."""
        while len(self._open) > 1:
            self._join()
        return self._open[0][1] if self._open else None

    def _join(self) -> None:
        (count, one), (more, other) = self._open[-2:]
        self._open[-2:] = [(count + more, self._merge(one, other))]
