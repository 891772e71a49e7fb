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


class Candidate(Protocol):
    name: str

    @property
    def identity(self) -> str: ...

    def can_answer(self, task: Task) -> bool: ...

    def answer_steps(self, dataset: Dataset, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps: ...


@dataclass
class VectorsCandidate:
    name: str
    vectors: WordVectors
    cache: AnswerCache
    lookups: dict[OovPolicy, Lookup] = field(default_factory=dict)

    def can_answer(self, task: Task) -> bool:
        return True

    def answer_steps(self, dataset: Dataset, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        lookup = self.lookups.setdefault(policy, Lookup(_hide_subwords(self.vectors, policy), policy))
        if self.cache.folder is None:
            return (yield from task.answer_steps(lookup, items))
        key = _cache_key(dataset, task) | {"vectors": self.identity, "oov": policy}
        answers = self.cache.get(key)
        if answers is None or len(answers.covered) != len(items):
            answers = yield from task.answer_steps(lookup, items)
            self.cache.put(key, answers)
        return answers

    @cached_property
    def identity(self) -> str:
        return digest_vectors(self.vectors)


@dataclass
class EncoderCandidate:
    name: str
    encoder: Encoder
    cache: AnswerCache

    @property
    def identity(self) -> str:
        return self.encoder.identity

    def can_answer(self, task: Task) -> bool:
        return isinstance(task, Sentences)

    def answer_steps(self, dataset: Dataset, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        assert isinstance(task, Sentences)
        yield from ()
        key = _cache_key(dataset, task) | {"encoder": self.identity} if self.cache.folder else {}
        answers = self.cache.get(key)
        if answers is None:
            texts = task.texts(items)
            answers = task.answer_with(np.asarray(self.encoder.encode(texts), np.float32))
            self.cache.put(key, answers)
        return answers


def _cache_key(dataset: Dataset, task: Task) -> dict[str, object]:
    return {"task": dataset.task, "settings": describe_settings(task), "data": digest_files(dataset.path)}


def _hide_subwords(vectors: WordVectors, policy: OovPolicy) -> WordVectors:
    """Only the policy "subword" may compose words from n-grams."""
    visible = policy == "subword" or vectors.subwords is None
    return vectors if visible else WordVectors(vectors.vocabulary, vectors.matrix)
