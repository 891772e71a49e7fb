"""What is evaluated: a set of vectors, on every task; any other sentence encoder, on sentences.

A candidate takes from the cache what it answered before. `answer_steps` is a generator of the fraction done.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.answer_cache import AnswerCache, describe_settings, digest_files, digest_vectors
from stillvec.evaluation.datasets import Dataset
from stillvec.evaluation.evaluation_report import OovPolicy
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.sentences import Sentences
from stillvec.evaluation.tasks import Answers, Items, Task
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
    """What answers tasks; a subclass says which, and how."""

    name: str
    cache: AnswerCache

    @property
    def identity(self) -> str:
        """A digest of what determines its answers."""
        raise NotImplementedError

    def can_answer(self, task: Task) -> bool:
        return True

    def answer_steps(self, dataset: Dataset, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        key: dict[str, object] = {}
        if self.cache.folder is not None:
            key = {"task": dataset.task, "settings": describe_settings(task), "data": digest_files(dataset.path)}
            key |= self._cache_key(policy)
        answers = self.cache.get(key)
        if answers is None or len(answers.covered) != len(items):
            answers = yield from self._compute(task, items, policy)
            self.cache.put(key, answers)
        return answers

    def _cache_key(self, policy: OovPolicy) -> dict[str, object]:
        raise NotImplementedError

    def _compute(self, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        raise NotImplementedError


@dataclass
class VectorsCandidate(Candidate):
    vectors: WordVectors
    lookups: dict[OovPolicy, Lookup] = field(default_factory=dict)

    @cached_property
    def identity(self) -> str:
        return digest_vectors(self.vectors)

    def _cache_key(self, policy: OovPolicy) -> dict[str, object]:
        return {"vectors": self.identity, "oov": policy}

    def _compute(self, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        vectors = self.vectors
        if policy != "subword" and vectors.subwords is not None:  # other policies do not compose words from n-grams
            vectors = WordVectors(vectors.vocabulary, vectors.matrix)
        return task.answer_steps(self.lookups.setdefault(policy, Lookup(vectors, policy)), items)


@dataclass
class EncoderCandidate(Candidate):
    encoder: Encoder

    @property
    def identity(self) -> str:
        return self.encoder.identity

    def can_answer(self, task: Task) -> bool:
        return isinstance(task, Sentences)

    def _cache_key(self, policy: OovPolicy) -> dict[str, object]:
        return {"encoder": self.identity}

    def _compute(self, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        assert isinstance(task, Sentences)
        yield from ()
        return task.answer_with(np.asarray(self.encoder.encode(task.texts(items)), np.float32))
