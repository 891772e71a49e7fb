"""The mean of the input embeddings of a word's subword tokens (`_token` rows of Zheng et al. 2022): no forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stillvec.corpus.text_chunk import TextChunk
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, TextSource, chunk_texts, to_numpy
from stillvec.learners.table_memory import PeakEstimate, word_table
from stillvec.progress import Phase
from stillvec.result import Result
from stillvec.statistics import Array, Statistics
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:  # merging needs no torch
    from stillvec.encoding import Encoded
    from stillvec.teachers import Teacher


@dataclass(frozen=True)
class InputEmbeddings:
    source: ClassVar[TextSource] = TextSource.OWN_TEXTS
    label: ClassVar[str] = "words"
    phase: ClassVar[Phase] = Phase.TOKENS

    def texts(self, vocabulary: Vocabulary) -> Iterator[TextChunk]:
        return chunk_texts(enumerate(vocabulary))

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _Table(teacher, len(vocabulary))


class _Table:
    layers: tuple[int, ...] = ()
    state_fields = ("table",)

    def __init__(self, teacher: Teacher, n_words: int) -> None:
        model: Any = teacher.model
        self.embeddings = model.get_input_embeddings().weight
        width = int(self.embeddings.shape[1])
        self.table = word_table(n_words, width, teacher.device, -np.inf)  # stays so for a word that is not read

    def update(self, encoded: Encoded) -> None:
        import torch.nn.functional as F

        ids = encoded.to_device(encoded.batch.ids).flatten()[encoded.word_token_index]
        offsets = encoded.tokens_per_word.cumsum(0) - encoded.tokens_per_word
        means = F.embedding_bag(ids, self.embeddings.float(), offsets, mode="mean")
        self.table[encoded.known_id] = means[encoded.known]

    def arrays(self) -> dict[str, Array]:
        return {"max:table": to_numpy(self.table)}


@dataclass(frozen=True)
class TokenTable:
    SUMMARY: ClassVar[str] = "the mean of the teacher's input embeddings of its subword tokens"
    PAPERS: ClassVar[tuple[str, ...]] = ("zheng-2022",)
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(tables=1.25),)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"table": InputEmbeddings()}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        table = statistics["table"]["max:table"]
        return Result(WordVectors(statistics["table"].vocabulary, np.where(np.isfinite(table), table, 0)))
