"""Words through their dictionary glosses: the teacher's mean output over each definition, averaged over senses.

Knowledge from outside the corpus: results that use it are reported apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from stillvec.corpus import read_dictionary
from stillvec.encoding import TextChunk
from stillvec.errors import LexiconError
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, Finished, WordMeans, WordStates, chunk_texts
from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import Array
from stillvec.teachers import Teacher
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class Glosses:
    source: str = "wordnet"
    layer: str = "last"
    label: ClassVar[str] = "glosses"

    def texts(self, vocabulary: Vocabulary) -> Iterator[TextChunk]:
        pairs = ((vocabulary.row(word), word, gloss) for word, gloss in read_dictionary(self.source))
        return chunk_texts((row, f"{word}: {gloss}") for row, word, gloss in pairs if row is not None)

    def listen(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        next(iter(read_dictionary(self.source)), None)  # one that cannot be read is told before the work
        return WordStates(self.layer).listen(teacher, vocabulary)


@dataclass(frozen=True)
class Dictionary:
    source: str = "wordnet"
    layer: str = "last"

    def parts(self) -> dict[str, AccumulatorSpec]:
        return {"glosses": Glosses(self.source, self.layer)}

    def finish(self, heard: Mapping[str, Statistics]) -> Finished:
        matrix, defined = gloss_means(heard["glosses"], self.source)
        return Finished(WordVectors(heard["glosses"].vocabulary, matrix), {"defined": int(defined.sum())})


def gloss_means(heard: Statistics, source: str) -> tuple[Array, Array]:
    """(V, D) mean over a word's glosses, and which words have one; the others get the mean of those that do."""
    defined = heard["sum:contexts"] > 0
    if not defined.any():
        raise LexiconError(
            f"The dictionary {source} defines none of the {len(defined):,} words; is it of their language?"
        )
    matrix = WordMeans(heard).mean()
    matrix[~defined] = matrix[defined].mean(0)
    return matrix, defined
