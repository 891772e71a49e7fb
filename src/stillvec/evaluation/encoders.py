"""Sentence encoders to compare with the mean of word vectors: a teacher, or a model2vec baseline.

The teacher is the upper bound: the mean of its last layer over all tokens of the sentence, special tokens included, as
sentence-transformers pools (Reimers & Gurevych 2019), truncated to its window. model2vec is a baseline of the same
cost: its own `encode` with a model folder, if it is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.evaluation.answer_cache import digest_folder
from stillvec.evaluation.candidates import Encoder

if TYPE_CHECKING:  # only a teacher needs torch
    from stillvec.teachers import Teacher

_MAX_TOKENS = 8_192  # in a batch, padding included


@dataclass(frozen=True)
class TeacherEncoder:
    """A contextual model, by folder or name."""

    source: str
    device: str = "auto"

    @cached_property
    def identity(self) -> str:
        """The files of its folder, else the digest of the model; with the device, as rounding differs."""
        folder = Path(self.source)
        if not folder.is_dir():
            from stillvec.teachers.loader import locate_folder

            cached = locate_folder(self.source)
            return f"{self.teacher.digest if cached is None else digest_folder(cached)} {self.device}"
        return f"{digest_folder(folder)} {self.device}"

    @cached_property
    def teacher(self) -> Teacher:
        from stillvec.teachers import load_teacher

        return load_teacher(self.source, device=self.device, precision="fp32")

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Batches of similar length; zero for a text without tokens."""
        teacher = self.teacher
        pieces = teacher.tokenizer.encode([*texts])
        before, after = teacher.tokenizer.prefix, teacher.tokenizer.suffix
        lengths = np.minimum(pieces.lengths, teacher.window - len(before) - len(after))
        starts = np.cumsum(pieces.lengths) - pieces.lengths
        vectors = np.zeros((len(texts), teacher.dim), np.float32)
        rows = [[*before, *pieces.ids[s : s + n].tolist(), *after] for s, n in zip(starts, lengths, strict=True)]
        order = [row for row in np.argsort(-lengths, kind="stable").tolist() if lengths[row]]
        while order:
            batch, order = _split(order, max(1, _MAX_TOKENS // len(rows[order[0]])))
            vectors[batch] = _pool(teacher, [rows[row] for row in batch])
        return vectors


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


def _split(rows: list[int], at: int) -> tuple[list[int], list[int]]:
    return rows[:at], rows[at:]


def _pool(teacher: Teacher, rows: Sequence[Sequence[int]]) -> NDArray[Any]:
    """The mean of the last layer over the tokens of each row (B, D)."""
    import torch

    ids = torch.full((len(rows), max(map(len, rows))), teacher.pad)  # (B, T)
    mask = torch.zeros_like(ids)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row)
        mask[at, : len(row)] = 1
    ids, mask = ids.to(teacher.device), mask.to(teacher.device)
    states = teacher.states(ids, mask, [teacher.depth])[teacher.depth].float()  # (B, T, D)
    sums = torch.einsum("btd,bt->bd", states, mask.float())
    return np.asarray((sums / mask.sum(1, keepdim=True)).cpu().numpy())
