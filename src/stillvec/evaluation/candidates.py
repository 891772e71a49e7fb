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
    name: str
    source: WordVectors | Encoder
    cache: AnswerCache
    lookups: dict[OovPolicy, Lookup] = field(default_factory=dict)

    @cached_property
    def identity(self) -> str:
        """A digest of what determines its answers."""
        return digest_vectors(self.source) if isinstance(self.source, WordVectors) else self.source.identity

    def can_answer(self, task: Task) -> bool:
        return isinstance(self.source, WordVectors) or isinstance(task, Sentences)

    def answer_steps(self, dataset: Dataset, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        key: dict[str, object] = {}
        if self.cache.folder is not None:
            is_encoder = not isinstance(self.source, WordVectors)
            key = {"encoder": self.identity} if is_encoder else {"vectors": self.identity, "oov": policy}
            key |= {"task": dataset.task, "settings": describe_settings(task), "data": digest_files(dataset.path)}
        answers = self.cache.get(key)
        if answers is None or len(answers.covered) != len(items):
            answers = yield from self._compute(task, items, policy)
            self.cache.put(key, answers)
        return answers

    def _compute(self, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        vectors = self.source
        if not isinstance(vectors, WordVectors):
            assert isinstance(task, Sentences)
            return task.answer_with(np.asarray(vectors.encode(task.texts(items)), np.float32))
        if policy != "subword" and vectors.subwords is not None:  # other policies do not compose words from n-grams
            vectors = WordVectors(vectors.vocabulary, vectors.matrix)
        return (yield from task.answer_steps(self.lookups.setdefault(policy, Lookup(vectors, policy)), items))
