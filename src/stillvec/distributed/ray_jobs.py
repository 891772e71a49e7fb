"""What a run gives its workers to do: stretches of the corpus that depend on the text and never on who reads them.

A job's statistics are a result of their own, and results are merged in the order of the jobs, two neighbours at a time.
So the numbers, to the last bit, do not depend on how many workers there are, or on which of them were lost on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stillvec.learners.encoding_pass import Met
from stillvec.learners.partition import Partition
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.statistics import Statistics, merge
from stillvec.statistics.mergeable import Array
from stillvec.vocabulary import Vocabulary

Heard = dict[int, dict[str, Array]]  # the arrays of parts, by their number in the lesson
SENTENCES, PARAGRAPHS = "sentences", "paragraphs"
_JOBS = 64  # that many, at least, if there are as many chunks
_RUN = 32  # chunks of a job, at most, where sentences are chosen,
_LONGEST = 1 << 28  # and else characters: about what a share of packed files holds
AGAIN = 8  # times that a worker is started again, and a job tried again
_ALONE = 8192  # words a job, where they are read alone


@dataclass(frozen=True)
class ReadingJob:
    """Text of the corpus, which comes with it; or a share of what is read beside the corpus."""

    name: str
    unit: str = SENTENCES
    share: Partition | None = None  # of what is read beside the corpus,
    met: Met | None = None  # where these words were met


def chunks_a_job(reading: SentenceStream) -> int:
    """At most: jobs end with the shares of the corpus."""
    size = reading.characters_at_once
    most = _RUN if reading.contexts is not None else max(1, _LONGEST // size)
    return max(1, min(most, reading.characters // size // _JOBS))


def leftover_jobs(words: int, met: Met, *, in_order: bool) -> list[ReadingJob]:
    """What is read beside the corpus; where contexts are kept, by one, so that they stay in order."""
    count = 1 if in_order else max(1, -(-words // _ALONE))
    return [ReadingJob(f"rest-{number}-of-{count}", share=Partition(number, count), met=met) for number in range(count)]


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
