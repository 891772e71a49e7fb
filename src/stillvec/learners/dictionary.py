"""Words through their dictionary glosses: the teacher's mean output over each definition, averaged over senses.

This is knowledge from outside the corpus: results that use it are reported separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stillvec.corpus.text_chunk import TextChunk
from stillvec.errors import LexiconError
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, TextSource, WordMeans, WordStates, chunk_texts
from stillvec.learners.table_memory import PeakEstimate
from stillvec.lexicons import read_definitions, read_dictionary
from stillvec.progress import Phase
from stillvec.result import Result
from stillvec.statistics import Array, Statistics
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from stillvec.teachers import Teacher


@dataclass(frozen=True)
class Glosses(WordStates):
    """States of words through their glosses."""

    dictionary: str = "wordnet"
    source = TextSource.OWN_TEXTS
    label = "glosses"
    phase: ClassVar[Phase] = Phase.GLOSSES

    def texts(self, vocabulary: Vocabulary) -> Iterator[TextChunk]:
        definitions = read_definitions(self.dictionary, vocabulary.words)
        pairs = ((vocabulary.row(word), word, gloss) for word, gloss in definitions)
        return chunk_texts((row, f"{word}: {gloss}") for row, word, gloss in pairs if row is not None)

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        next(iter(read_dictionary(self.dictionary)), None)  # an unreadable one is an error before the forward pass
        return super().make_accumulator(teacher, vocabulary)


@dataclass(frozen=True)
class Dictionary:
    SUMMARY: ClassVar[str] = "the mean of the teacher's output over its dictionary glosses"
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(per_table=1, tables=3),)
    RENAMED: ClassVar[Mapping[str, str]] = {"source": "dictionary"}
    dictionary: str = "wordnet"  # a dictionary with glosses: a file, or wordnet
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, last3, or best

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"glosses": Glosses(self.layer, dictionary=self.dictionary)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        matrix, defined = gloss_means(statistics["glosses"], self.dictionary)
        return Result(WordVectors(statistics["glosses"].vocabulary, matrix), {"defined": int(defined.sum())})


def gloss_means(statistics: Statistics, dictionary: str) -> tuple[Array, Array]:
    """(V, D) mean over a word's glosses, and which words have one; the others get the mean of those that do."""
    defined = statistics["sum:contexts"] > 0
    if not defined.any():
        message = f"The dictionary {dictionary} defines none of the {len(defined):,} words; is it in their language?"
        raise LexiconError(message, code="no-definitions")
    matrix = WordMeans(statistics).mean()
    matrix[~defined] = matrix[defined].mean(0)
    return matrix, defined
