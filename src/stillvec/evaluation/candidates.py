"""What is evaluated: a set of vectors, on every task; a teacher at a layer, on tasks that read sentences word by word;
any other encoder, on tasks that need only a vector per text.

A candidate takes from the cache what it answered before. `answer_steps` is a generator of the fraction done.

The teacher is the upper bound of encoders: the mean of its last layer over all tokens of the sentence, special tokens
included, as sentence-transformers pools (Reimers & Gurevych 2019), truncated to its window.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.answer_cache import AnswerCache, digest_data
from stillvec.evaluation.datasets import Dataset
from stillvec.evaluation.evaluation_report import OovPolicy
from stillvec.evaluation.intervals import Floats
from stillvec.evaluation.tasks import Answers, ContextualTask, Items, Task
from stillvec.evaluation.teacher_states import StateReader, TeacherSource, TeacherStates
from stillvec.files import digest
from stillvec.formats.request import digest_vectors
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import Representation, Sequences
from stillvec.vectors import WordVectors

AnswerSteps = Generator[float, None, Answers]


class Encoder(Protocol):
    """Makes a vector of a text in its own way: a teacher, a baseline."""

    @property
    def identity(self) -> str:
        """A digest of what determines its vectors."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """One vector per text (n, dim)."""
        ...


@dataclass
class Candidate:
    name: str
    source: WordVectors | TeacherStates | Encoder
    cache: AnswerCache
    lookups: dict[OovPolicy, Lookup] = field(default_factory=dict)

    @cached_property
    def identity(self) -> str:
        """A digest of what determines its answers."""
        return digest_vectors(self.source) if isinstance(self.source, WordVectors) else self.source.identity

    def answer_steps(self, dataset: Dataset, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        key: dict[str, object] = {}
        if self.cache.folder is not None:
            is_encoder = not isinstance(self.source, WordVectors)
            key = {"encoder": self.identity} if is_encoder else {"vectors": self.identity, "oov": policy}
            key |= {"task": dataset.task, "settings": asdict(task), "data": digest_data(task, dataset.path)}
            if dataset.path is None:  # the items depend on the other sets
                key["items"] = digest(iter([repr(items).encode("utf-8", "surrogatepass")]))
        answers = self.cache.get(key)
        if answers is None or len(answers.covered) != len(items):
            answers = yield from self._compute(task, items, policy)
            self.cache.put(key, answers)
        return answers

    def _compute(self, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        vectors = self.source
        if not isinstance(vectors, WordVectors):
            assert isinstance(task, ContextualTask)
            representation = vectors if isinstance(vectors, TeacherStates) else EncodedTexts(vectors)
            return (yield from task.answer_steps(representation, items))
        if policy != "subword" and vectors.subwords is not None:  # other policies do not compose words from n-grams
            vectors = WordVectors(vectors.vocabulary, vectors.matrix)
        return (yield from task.answer_steps(self.lookups.setdefault(policy, Lookup(vectors, policy)), items))


@dataclass(frozen=True)
class EncodedTexts(Representation):
    """An encoder as a representation: a vector per text, and no words."""

    encoder: Encoder
    oov: ClassVar[OovPolicy] = "skip"
    has_words: ClassVar[bool] = False

    def read_tokens_steps(self, sentences: Sequence[Sequence[str]]) -> Generator[float, None, Sequences]:
        raise NotImplementedError

    def read_texts_steps(self, texts: Sequence[str]) -> Generator[float, None, Sequences]:
        raise NotImplementedError

    def encode_texts_steps(self, texts: Sequence[str]) -> Generator[float, None, NDArray[np.float32]]:
        yield from ()
        return np.asarray(self.encoder.encode(texts), np.float32)

    def count_words(self, texts: Sequence[str]) -> Floats:
        """An encoder knows a text or does not: one word that is known."""
        return np.ones((len(texts), 2))


@dataclass(frozen=True)
class TeacherEncoder(TeacherSource):
    """A contextual model whose sentences are the mean of its last layer."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return TeacherStates(StateReader(self, wanted=["last"])).encode_texts(texts)
