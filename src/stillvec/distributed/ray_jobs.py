"""What the workers of a Ray cluster are given to do: parts of the corpus that depend on the text, never on the workers.

The statistics of a job are a result of their own, and results are merged in the order of the jobs, two neighbours at a
time. So the numbers do not depend, to the last bit, on how many workers there are, or on which of them were lost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stillvec.learners.encoding_pass import WordCounts
from stillvec.learners.partition import Partition
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.statistics import Array, Statistics, merge
from stillvec.vocabulary import Vocabulary

JobStatistics = dict[int, dict[str, Array]]  # arrays of accumulators, by their number in the pass
SENTENCES, PARAGRAPHS = "sentences", "paragraphs"
MAX_RETRIES = 8  # of a worker that dies, and of its job
_MIN_JOBS = 64  # if there are as many chunks
_MAX_CHUNKS = 32  # per job, where sentences are selected
_MAX_CHARACTERS = 1 << 28  # per job otherwise: about as much as a slice of compressed files holds
_WORDS_PER_JOB = 8192  # of words that are read alone


@dataclass(frozen=True)
class ReadingJob:
    """Text of the corpus, which is sent along; or a part of what is read beside the corpus."""

    name: str
    unit: str = SENTENCES
    partition: Partition | None = None  # of what is read beside the corpus
    counts: WordCounts | None = None  # of words in the corpus, for such a part


def chunks_per_job(stream: SentenceStream) -> int:
    """At most: jobs also end with the slices of the corpus."""
    size = stream.characters_per_chunk
    limit = _MAX_CHUNKS if stream.contexts is not None else max(1, _MAX_CHARACTERS // size)
    return max(1, min(limit, stream.n_characters // size // _MIN_JOBS))


def leftover_jobs(n_words: int, counts: WordCounts, *, in_order: bool) -> list[ReadingJob]:
    """What is read beside the corpus; where contexts are stored, one job, so that they stay in order."""
    number = 1 if in_order else max(1, -(-n_words // _WORDS_PER_JOB))
    return [
        ReadingJob(f"rest-{index}-of-{number}", partition=Partition(index, number), counts=counts)
        for index in range(number)
    ]


def merge_jobs(one: JobStatistics, other: JobStatistics) -> JobStatistics:
    """Two neighbouring results as one, as results are merged; both have the words of one vocabulary."""
    same = Vocabulary(())  # whose rows need not be looked up
    both = {
        number: dict(merge(Statistics(same, one[number]), Statistics(same, other[number]), same).arrays)
        for number in one.keys() & other.keys()
    }
    return {**one, **other, **both}


class MergeTree:
    """Results merged as they arrive: neighbours first, in a shape that depends only on their number."""

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self._merge = merge
        self._open: list[tuple[int, Any]] = []  # (number of results, merged result), fewer and fewer

    def add(self, result: Any) -> None:
        self._open.append((1, result))
        while len(self._open) > 1 and self._open[-1][0] == self._open[-2][0]:
            self._merge_last()

    def root(self) -> Any:
        """All results as one; None where nothing was added."""
        while len(self._open) > 1:
            self._merge_last()
        return self._open[0][1] if self._open else None

    def _merge_last(self) -> None:
        (count, one), (more, other) = self._open[-2:]
        self._open[-2:] = [(count + more, self._merge(one, other))]
