"""What is evaluated: a set of vectors, on every task; a teacher at a layer, on tasks that read sentences word by word;
any other sentence encoder, on sentences.

A candidate takes from the cache what it answered before. `answer_steps` is a generator of the fraction done.

The teacher is the upper bound of encoders: the mean of its last layer over all tokens of the sentence, special tokens
included, as sentence-transformers pools (Reimers & Gurevych 2019), truncated to its window. model2vec is a baseline of
the same cost as vectors: its own `encode` with a model folder, if it is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.evaluation.answer_cache import AnswerCache, digest_files, digest_folder
from stillvec.evaluation.datasets import Dataset
from stillvec.evaluation.evaluation_report import OovPolicy
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.sentences import Sentences
from stillvec.evaluation.tasks import Answers, ContextualTask, Items, Task
from stillvec.evaluation.teacher_states import StateReader, TeacherSource, TeacherStates
from stillvec.formats.request import digest_vectors
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
            key |= {"task": dataset.task, "settings": asdict(task), "data": digest_files(dataset.path)}
        answers = self.cache.get(key)
        if answers is None or len(answers.covered) != len(items):
            answers = yield from self._compute(task, items, policy)
            self.cache.put(key, answers)
        return answers

    def _compute(self, task: Task, items: Items, policy: OovPolicy) -> AnswerSteps:
        vectors = self.source
        if isinstance(vectors, TeacherStates):
            assert isinstance(task, ContextualTask)
            return (yield from task.answer_steps(vectors, items))
        if not isinstance(vectors, WordVectors):
            assert isinstance(task, Sentences)
            return task.answer_with(np.asarray(vectors.encode(task.texts(items)), np.float32))
        if policy != "subword" and vectors.subwords is not None:  # other policies do not compose words from n-grams
            vectors = WordVectors(vectors.vocabulary, vectors.matrix)
        return (yield from task.answer_steps(self.lookups.setdefault(policy, Lookup(vectors, policy)), items))


@dataclass(frozen=True)
class TeacherEncoder(TeacherSource):
    """A contextual model whose sentences are the mean of its last layer."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return TeacherStates(StateReader(self, wanted=["last"])).encode_texts(texts)


@dataclass(frozen=True)
class Model2VecEncoder:
    """A model2vec folder, encoded by model2vec."""

    folder: str

    @cached_property
    def identity(self) -> str:
        return f"model2vec {digest_folder(Path(self.folder))}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        static = importlib.import_module("model2vec").StaticModel.from_pretrained(self.folder)
        return np.asarray(static.encode([*texts]), np.float32)


def parse_baseline(text: str) -> Encoder:
    """The encoder for `model2vec:FOLDER`; fails before any work if it cannot be used."""
    kind, _, folder = text.partition(":")
    if kind != "model2vec":
        raise UsageError.unknown("baseline", kind, ["model2vec"])
    if not Path(folder).is_dir() or not folder:
        raise UsageError.expected("model2vec:FOLDER with a folder that model2vec wrote", repr(text), where="--baseline")
    if importlib.util.find_spec("model2vec") is None:
        raise UsageError.conflict("The baseline model2vec is not installed", cure="pip install model2vec")
    return Model2VecEncoder(folder)
