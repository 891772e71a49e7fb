"""What tests of baselines share: a text of made sentences, negative sampling written out."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from tiny_corpus import counted, sentences

from stillvec.baselines import EncodedCorpus, Resources, encode_corpus
from stillvec.corpus import Corpus
from stillvec.progress import drain as drained

ONE = Resources(threads=1)


def written(folder: Path, made: list[str] | None = None) -> EncodedCorpus:
    """The texts, or 96 sentences, with all their words."""
    folder.mkdir()
    made = made or sentences(96)
    return drained(encode_corpus(Corpus.from_texts(made), counted(made), folder))


def slow_loss(vectors: torch.Tensor, table: torch.Tensor, targets: list[int], drawn: list[int], k: int) -> torch.Tensor:
    loss = torch.zeros((), dtype=torch.float64)
    for vector, target in zip(vectors, targets, strict=True):
        loss = loss + F.softplus(-(vector @ table[target]))
        for each in drawn:
            loss = loss + k / len(drawn) * F.softplus(vector @ table[each])
    return loss
