"""Stored contexts in blocks of some thousand sentences on the device that trains."""

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from stillvec.memory import release_pages
from stillvec.statistics import Array, Statistics

BLOCK_SENTENCES = 16_384  # shuffled together; a checkpoint may follow each block
_COPY_ROWS = 1 << 18


class ContextBlock(NamedTuple):
    words: Tensor  # (T,) rows of the vocabulary, -1 for an unknown word
    lengths: Tensor  # (S,) of the sentences
    contexts: Tensor  # (S, D)
    states: Tensor | None  # (T, D)


class ContextBlocks:
    """The blocks of stored contexts; iterating gives all of them in their stored order."""

    def __init__(self, stored: Statistics, device: torch.device, *, gpu_share: float = 0.3) -> None:
        self.stored = stored
        self.device = device
        self.gpu_share = gpu_share  # of a GPU's free memory, for one stored array
        self._lengths = stored["stored:lengths"]
        self.on_gpu: dict[str, Tensor] = {}  # whole arrays, where they fit

    def __len__(self) -> int:
        return math.ceil(len(self._lengths) / BLOCK_SENTENCES)

    def __iter__(self) -> Iterator[ContextBlock]:
        return (self.read(number) for number in range(len(self)))

    @property
    def n_sentences(self) -> int:
        return len(self._lengths)

    def block_size(self, number: int) -> int:
        return min(BLOCK_SENTENCES, self.n_sentences - number * BLOCK_SENTENCES)

    def read(self, number: int, generator: np.random.Generator | None = None) -> ContextBlock:
        """A block, its sentences in their stored order or shuffled."""
        begin, end = number * BLOCK_SENTENCES, number * BLOCK_SENTENCES + self.block_size(number)
        lengths = np.asarray(self._lengths[begin:end], np.int64)
        first = self._first_words[number]
        last = first + int(lengths.sum())
        scale = float(self.stored["stored:scale"])
        words = self._rows("stored:words", first, last).long()
        contexts = self._rows("stored:contexts", begin, end).float() * scale
        states = None
        if "stored:states" in self.stored.arrays:
            states = self._rows("stored:states", first, last)
            states = states if scale == 1 else states.float() * scale
        sizes = torch.from_numpy(lengths).to(self.device)
        if generator is None:
            return ContextBlock(words, sizes, contexts, states)
        order = generator.permutation(len(lengths))
        starts = np.cumsum(lengths) - lengths
        ends = np.cumsum(lengths[order])
        places = np.arange(len(words)) + np.repeat(starts[order] - (ends - lengths[order]), lengths[order])
        sentence, word = torch.from_numpy(order).to(self.device), torch.from_numpy(places).to(self.device)
        return ContextBlock(words[word], sizes[sentence], contexts[sentence], None if states is None else states[word])

    def count_words(self) -> Tensor:
        """How often each word occurs in the contexts (V,)."""
        words = np.asarray(self.stored["stored:words"])
        counts = np.bincount(words[words >= 0], minlength=len(self.stored.vocabulary))
        return torch.from_numpy(counts).to(self.device)

    @cached_property
    def _first_words(self) -> list[int]:
        """Where the words of each block begin; summed once, since there may be thousands of blocks."""
        starts = range(0, self.n_sentences, BLOCK_SENTENCES)
        sums = (int(np.sum(self._lengths[at : at + BLOCK_SENTENCES], dtype=np.int64)) for at in starts)
        return [0, *accumulate(sums)]

    def _rows(self, name: str, begin: int, end: int) -> Tensor:
        """Rows of a stored array, from disk or from a copy of the whole array on the GPU."""
        array: Array = self.stored[name]
        if self.device.type != "cuda":
            rows = torch.from_numpy(np.array(array[begin:end]))
            release_pages(array)
            return rows
        if name not in self.on_gpu:
            if array.nbytes >= self.gpu_share * torch.cuda.mem_get_info(self.device)[0]:
                return torch.from_numpy(np.array(array[begin:end])).to(self.device)
            dtype = torch.from_numpy(np.zeros(0, array.dtype)).dtype
            self.on_gpu[name] = whole = torch.empty(array.shape, dtype=dtype, device=self.device)
            for at in range(0, len(array), _COPY_ROWS):
                whole[at : at + _COPY_ROWS] = torch.from_numpy(np.array(array[at : at + _COPY_ROWS])).to(self.device)
        return self.on_gpu[name][begin:end]


def is_full(blocks: Iterable[ContextBlock]) -> bool:
    """Whether these together have the sentences of one block."""
    return sum(len(block.lengths) for block in blocks) >= BLOCK_SENTENCES


def concatenate_blocks(blocks: list[ContextBlock]) -> ContextBlock:
    """One block of many; it shares no tensor with them."""
    words, lengths, contexts, states = zip(*blocks, strict=True)
    whole = None if states[0] is None else torch.cat(states)
    return ContextBlock(torch.cat(words), torch.cat(lengths), torch.cat(contexts), whole)
