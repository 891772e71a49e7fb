"""Who is judged: a set of vectors, on every task; whatever else makes a vector of a text, on sentences.

A contestant answers from the cache what it answered before. Answering is a generator of how far it is, 0 to 1.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.answer_cache import Cache, files_digest, settings_of, vectors_digest
from stillvec.evaluation.datasets import Dataset
from stillvec.evaluation.evaluation_report import Unknown
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.sentences import Sentences
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.vectors import WordVectors

Answering = Generator[float, None, Answers]


class Encoder(Protocol):
    """Makes a vector of a text, in a way of its own: a teacher, a rival."""

    @property
    def identity(self) -> str:
        """What decides its vectors, as one name."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """A vector a text (n, dim)."""
        ...


class Candidate(Protocol):
    name: str

    @property
    def identity(self) -> str: ...

    def can(self, task: Task) -> bool: ...

    def answer_steps(self, dataset: Dataset, task: Task, items: Items, policy: Unknown) -> Answering: ...


@dataclass
class VectorsCandidate:
    name: str
    vectors: WordVectors
    cache: Cache
    lookups: dict[Unknown, Lookup] = field(default_factory=dict)

    def can(self, task: Task) -> bool:
        return True

    def answer_steps(self, dataset: Dataset, task: Task, items: Items, policy: Unknown) -> Answering:
        if self.cache.folder is None:
            return (yield from self._answer_steps(task, items, policy))
        facts = _facts(dataset, task) | {"vectors": self.identity, "unknown": policy}
        answers = self.cache.get(facts)
        if answers is None or len(answers.covered) != len(items):
            answers = yield from self._answer_steps(task, items, policy)
            self.cache.put(facts, answers)
        return answers

    def _answer_steps(self, task: Task, items: Items, policy: Unknown) -> Answering:
        lookup = self.lookups.setdefault(policy, Lookup(_seen(self.vectors, policy), policy))
        return (yield from task.answer_steps(lookup, items))

    @cached_property
    def identity(self) -> str:
        return vectors_digest(self.vectors)


@dataclass
class EncoderCandidate:
    name: str
    encoder: Encoder
    cache: Cache

    @property
    def identity(self) -> str:
        return self.encoder.identity

    def can(self, task: Task) -> bool:
        return isinstance(task, Sentences)

    def answer_steps(self, dataset: Dataset, task: Task, items: Items, policy: Unknown) -> Answering:
        assert isinstance(task, Sentences)
        yield from ()
        facts = _facts(dataset, task) | {"encoder": self.identity} if self.cache.folder else {}
        answers = self.cache.get(facts)
        if answers is None:
            texts = task.texts(items)
            answers = task.answer_with(np.asarray(self.encoder.encode(texts), np.float32))
            self.cache.put(facts, answers)
        return answers


def _facts(dataset: Dataset, task: Task) -> dict[str, object]:
    return {"task": dataset.task, "settings": settings_of(task), "data": files_digest(dataset.path)}


def _seen(vectors: WordVectors, policy: Unknown) -> WordVectors:
    """Only the policy `subword` may make words of n-grams."""
    kept = policy == "subword" or vectors.subwords is None
    return vectors if kept else WordVectors(vectors.vocabulary, vectors.matrix)
