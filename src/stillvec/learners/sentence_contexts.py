"""Sums of sentence vectors per word, with the second moments of all sentence vectors."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from stillvec.encoding import Encoded
from stillvec.learners.accumulators import Accumulator, TextSource, parse_layers, to_numpy
from stillvec.learners.table_memory import word_table
from stillvec.statistics import Array
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class SentenceContexts:
    layer: str = "last"
    source: ClassVar[TextSource] = TextSource.SENTENCES

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _ContextTables(parse_layers(self.layer, teacher.depth), teacher, len(vocabulary))


class _ContextTables:
    state_fields = ("sums", "n_contexts", "count", "total", "gram")

    def __init__(self, layers: tuple[int, ...], teacher: Teacher, n_words: int) -> None:
        self.layers = layers
        device = teacher.device
        self.sums = word_table(n_words, teacher.dim, device)
        self.n_contexts = torch.zeros(n_words, dtype=torch.int64, device=device)
        self.count = torch.zeros(1, dtype=torch.float64, device=device)
        self.total = torch.zeros(teacher.dim, dtype=torch.float64, device=device)
        self.gram = torch.zeros(teacher.dim, teacher.dim, dtype=torch.float64, device=device)

    def update(self, encoded: Encoded) -> None:
        ids = encoded.known_id
        contexts = sum(encoded.sentences(layer) for layer in self.layers) / len(self.layers)  # (S, D)
        assert isinstance(contexts, torch.Tensor)
        self.sums.index_add_(0, ids, contexts[encoded.known_sentence])
        self.n_contexts.index_add_(0, ids, torch.ones_like(ids))
        self.count += len(contexts)
        self.total += contexts.sum(0, dtype=torch.float64)
        self.gram += contexts.T @ contexts

    def arrays(self) -> dict[str, Array]:
        return {"sum:context": to_numpy(self.sums), "sum:contexts": to_numpy(self.n_contexts)} | self.totals()

    def totals(self) -> dict[str, Array]:
        """The arrays that belong to no word."""
        totals = {"sentences": self.count, "context": self.total, "gram": self.gram}
        return {f"total:{name}": to_numpy(tensor) for name, tensor in totals.items()}
