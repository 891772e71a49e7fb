"""What makes a vector of a sentence itself, to be judged beside the mean of word vectors: a teacher, a rival.

The teacher is the ceiling: the mean of its last layer over all pieces of the sentence, special tokens included, as
sentence-transformers pools (Reimers & Gurevych 2019); what is beyond its window is not read. model2vec is the rival of
the same cost: its own `encode` of a folder that it wrote, if it is installed.
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

from stillvec.errors import UsageError, suggest
from stillvec.evaluation.answer_cache import folder_digest
from stillvec.evaluation.candidates import Encoder

if TYPE_CHECKING:  # torch is for those who have a teacher
    from stillvec.teachers import Teacher

_PIECES = 8_192  # in a batch, padding included


@dataclass(frozen=True)
class TeacherEncoder:
    """A contextual model, by folder or name."""

    source: str
    device: str = "auto"

    @cached_property
    def identity(self) -> str:
        """The files of its folder, else the digest of what is loaded. The device is in it, as rounding differs."""
        folder = Path(self.source)
        if not folder.is_dir():
            from stillvec.teachers.loader import locate_folder

            found = locate_folder(self.source)
            return f"{self.teacher.digest if found is None else folder_digest(found)} {self.device}"
        return f"{folder_digest(folder)} {self.device}"

    @cached_property
    def teacher(self) -> Teacher:
        from stillvec.teachers import load_teacher

        return load_teacher(self.source, device=self.device, precision="fp32")

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Batches of like length; zero for a text without pieces."""
        teacher = self.teacher
        pieces = teacher.tokenizer.encode([*texts])
        before, after = teacher.tokenizer.prefix, teacher.tokenizer.suffix
        lengths = np.minimum(pieces.lengths, teacher.window - len(before) - len(after))
        starts = np.cumsum(pieces.lengths) - pieces.lengths
        found = np.zeros((len(texts), teacher.dim), np.float32)
        rows = [[*before, *pieces.ids[s : s + n].tolist(), *after] for s, n in zip(starts, lengths, strict=True)]
        order = [row for row in np.argsort(-lengths, kind="stable").tolist() if lengths[row]]
        while order:
            batch, order = _split(order, max(1, _PIECES // len(rows[order[0]])))
            found[batch] = _pooled(teacher, [rows[row] for row in batch])
        return found


@dataclass(frozen=True)
class Model2VecEncoder:
    """A folder that model2vec wrote, encoded as model2vec does."""

    folder: str

    @cached_property
    def identity(self) -> str:
        return f"model2vec {folder_digest(Path(self.folder))}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        static = importlib.import_module("model2vec").StaticModel.from_pretrained(self.folder)
        return np.asarray(static.encode([*texts]), np.float32)


def rival(text: str) -> Encoder:
    """The encoder that `model2vec:FOLDER` asks for; what cannot be is told before any work."""
    kind, colon, folder = text.partition(":")
    if kind != "model2vec":
        raise UsageError(f"There is no rival {kind!r}; {suggest(kind, ['model2vec'])}")
    if not colon or not Path(folder).is_dir():
        raise UsageError(f"A rival is model2vec:FOLDER, a folder that model2vec wrote, and {text!r} names none.")
    if importlib.util.find_spec("model2vec") is None:
        raise UsageError("The rival model2vec is not installed: pip install model2vec, or leave --rival out.")
    return Model2VecEncoder(folder)


def _split(rows: list[int], at: int) -> tuple[list[int], list[int]]:
    return rows[:at], rows[at:]


def _pooled(teacher: Teacher, rows: Sequence[Sequence[int]]) -> NDArray[Any]:
    """The mean of the last layer over the pieces of each row (B, D)."""
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
