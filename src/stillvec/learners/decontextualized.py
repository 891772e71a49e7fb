"""Words through the teacher without a corpus, bare or in templates (the `_word` rows of Zheng et al. 2022).

For each template the teacher's mean output over the whole text is taken, the mean over the vocabulary removed (that is
what the template itself says) and rows made unit; the templates' rows are averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from stillvec.encoding import TextChunk
from stillvec.errors import UsageError
from stillvec.learners.accumulators import (
    Accumulator,
    AccumulatorSpec,
    TextSource,
    WordMeans,
    WordStates,
    chunk_texts,
    mean_matrix,
)
from stillvec.learners.table_memory import PeakEstimate
from stillvec.numerics import unit_rows
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import Array
from stillvec.teachers import Teacher
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

TEMPLATES = ("{}", "what is {}?", "the meaning of {} is")


@dataclass(frozen=True)
class Isolated:
    """Listens to each word of the vocabulary in one template."""

    template: str = "{}"
    layer: str = "last"
    source: ClassVar[TextSource] = TextSource.OWN_TEXTS

    def __post_init__(self) -> None:
        if self.template.count("{}") != 1:
            raise UsageError(f"A template has one {{}} where the word goes, and {self.template!r} came.")

    @property
    def label(self) -> str:
        return f"words in {self.template!r}"

    def texts(self, vocabulary: Vocabulary) -> Iterator[TextChunk]:
        return chunk_texts((row, self.template.replace("{}", word)) for row, word in enumerate(vocabulary))

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return WordStates(self.layer).make_accumulator(teacher, vocabulary)


@dataclass(frozen=True)
class Decontextualized:
    templates: tuple[str, ...] = TEMPLATES
    layer: str = "last"
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(1, 3),)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {f"template-{n}": Isolated(text, self.layer) for n, text in enumerate(self.templates)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        first = next(iter(statistics.values()))
        return Result(WordVectors(first.vocabulary, template_mean(statistics.values())))


def template_mean(statistics: Iterable[Statistics]) -> Array:
    """Mean over templates of unit(centred mean output)."""
    rows = []
    for each in statistics:
        matrix = WordMeans(each).mean()
        rows.append(unit_rows(matrix - matrix.mean(0) if len(matrix) > 1 else matrix))  # one word is its own mean
    return mean_matrix(rows)
