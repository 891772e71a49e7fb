"""Words through the teacher without a corpus, bare or in templates (the `_word` rows of Zheng et al. 2022).

For each template: the teacher's mean output over the whole text, without its mean over the vocabulary (which is what
the template itself contributes), rows of unit length; then the mean over templates.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from stillvec.corpus.text_chunk import TextChunk
from stillvec.errors import UsageError
from stillvec.learners.accumulators import AccumulatorSpec, TextSource, WordMeans, WordStates, chunk_texts, mean_matrix
from stillvec.learners.table_memory import PeakEstimate
from stillvec.numerics import unit_rows
from stillvec.progress import Phase
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

TEMPLATES = ("{}", "what is {}?", "the meaning of {} is")


@dataclass(frozen=True)
class Templates(WordStates):
    """States of each word of the vocabulary, averaged over templates: a table per layer, however many templates."""

    templates: tuple[str, ...] = TEMPLATES
    source = TextSource.OWN_TEXTS
    phase: ClassVar[Phase] = Phase.TEMPLATES

    def __post_init__(self) -> None:
        if not self.templates:
            raise UsageError.expected("at least one template", "none", where="setting 'templates'")
        for template in self.templates:
            if template.count("{}") != 1:
                raise UsageError.expected("one {} for the word", repr(template), where="setting 'templates'")

    @property
    def label(self) -> str:
        return f"words in {', '.join(map(repr, self.templates))}"

    def texts(self, vocabulary: Vocabulary) -> Iterator[TextChunk]:
        words = [*enumerate(vocabulary)]
        return chunk_texts((row, text.replace("{}", word)) for text in self.templates for row, word in words)


@dataclass(frozen=True)
class Decontextualized:
    SUMMARY: ClassVar[str] = "the teacher's output for it alone, bare or in templates"
    PAPERS: ClassVar[tuple[str, ...]] = ("zheng-2022",)
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(per_table=1, tables=3),)
    templates: tuple[str, ...] = TEMPLATES  # templates for isolated words, with {} in place of the word
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, last3, or best

    @staticmethod
    def choose_templates(templates: tuple[str, ...]) -> tuple[str, ...]:
        """Of those of a language: the bare word, the question and the meaning."""
        return tuple(dict.fromkeys(["{}", *templates[:2]]))

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {f"template-{n}": Templates(self.layer, templates=(text,)) for n, text in enumerate(self.templates)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        vocabulary = next(iter(statistics.values())).vocabulary
        means = (WordMeans(template).mean() for template in statistics.values())
        # a single word would be its own mean
        centred = (unit_rows(matrix - matrix.mean(0) if len(matrix) > 1 else matrix) for matrix in means)
        return Result(WordVectors(vocabulary, mean_matrix(centred)))
