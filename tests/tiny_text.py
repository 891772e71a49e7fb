"""What tests of baselines share: a text of made sentences, generators run out, negative sampling written out."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from tiny_corpus import counted, sentences

from stillvec.baselines import EncodedCorpus, Resources, write_text
from stillvec.corpus import Corpus

T = TypeVar("T")
ONE = Resources(threads=1)


def drained(steps: Generator[Any, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def written(folder: Path, made: list[str] | None = None) -> EncodedCorpus:
    """The texts, or 96 sentences, with all their words."""
    folder.mkdir()
    made = made or sentences(96)
    return drained(write_text(Corpus.from_texts(made), counted(made), folder))


def slow_loss(vectors: torch.Tensor, table: torch.Tensor, targets: list[int], drawn: list[int], k: int) -> torch.Tensor:
    loss = torch.zeros((), dtype=torch.float64)
    for vector, target in zip(vectors, targets, strict=True):
        loss = loss + F.softplus(-(vector @ table[target]))
        for each in drawn:
            loss = loss + k / len(drawn) * F.softplus(vector @ table[each])
    return loss
