"""A batch after the teacher: states of words and sentences, for accumulators."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from stillvec.encoding.batch import Batch
from stillvec.errors import UsageError
from stillvec.teachers import Teacher
from stillvec.teachers.sentence_head import SentenceHead

N_BUFFERS = 8  # batches on their way to a GPU
_log = logging.getLogger(__name__)


class DeviceCopier:
    """Copies arrays to one device, to a GPU through pinned memory.

    Pinned buffers are used in rotation: allocating one stops the GPU, and by the time a buffer is used again its copy
    has long ended. One copier belongs to one pass and is used by one thread.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._buffers = [torch.empty(0, dtype=torch.int32)] * N_BUFFERS
        self._copied: list[Any] = []
        self._turn = 0
        if device.type == "cuda":
            self._copied = [torch.cuda.Event() for _ in range(N_BUFFERS)]  # type: ignore[no-untyped-call]

    def copy(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
        """All arrays in one transfer, as int64 tensors of the same names."""
        if not self._copied:
            return {name: torch.from_numpy(array).long().to(self.device) for name, array in arrays.items()}
        sizes = [array.size for array in arrays.values()]
        parts = torch.split(self._stage([*arrays.values()], sum(sizes)).long(), sizes)
        return {name: part.view(array.shape) for part, (name, array) in zip(parts, arrays.items(), strict=True)}

    def _stage(self, arrays: list[NDArray[Any]], size: int) -> Tensor:
        turn = self._turn = (self._turn + 1) % N_BUFFERS
        self._copied[turn].synchronize()
        if self._buffers[turn].numel() < size:
            self._buffers[turn] = torch.empty(2 * size, dtype=torch.int32, pin_memory=True)
        buffer = self._buffers[turn][:size]
        np.concatenate([array.ravel() for array in arrays], out=buffer.numpy(), casting="same_kind")
        copied = buffer.to(self.device, non_blocking=True)
        self._copied[turn].record()
        return copied


@dataclass(frozen=True, eq=False)
class Encoded:
    """A batch with its states. All tensors are on the teacher's device; pooled states are fp32 and computed once.

    B rows of T tokens hold S sentences with P tokens and W words, N of which the vocabulary has. CONTRIBUTING.md has a
    table of all members.
    """

    batch: Batch  # on the CPU: all words, known or not
    states: Mapping[int, Tensor]  # layer → (B * T, D), in the teacher's precision
    token_index: Tensor  # (P,)
    tokens_per_sentence: Tensor  # (S,)
    word_token_index: Tensor  # (K,)
    tokens_per_word: Tensor  # (W,)
    known: Tensor  # (N,) which of the W words are in the vocabulary
    known_id: Tensor  # (N,) their rows in it
    known_sentence: Tensor  # (N,) their sentences, 0 to S - 1
    segment_token_index: Tensor  # (L,)
    segment_tokens_per_word: Tensor  # (L,)
    segment_start: Tensor  # (G,)
    segment_word_id: Tensor  # (G,) rows in the vocabulary, with repetitions
    copier: DeviceCopier
    teacher: Teacher
    _cache: dict[object, Tensor] = field(default_factory=dict, init=False, repr=False)

    def words(self, layer: int, pooling: str = "mean") -> Tensor:
        """The state of each word, its tokens pooled by mean, first, last, max or min (W, D)."""
        key = (layer, pooling)
        if key not in self._cache:
            self._cache[key] = self._pool(layer, pooling)
        return self._cache[key]

    def add_to(self, table: Tensor, layer: int) -> None:
        """Add the mean-pooled state of each known word to its row of the table (V, D)."""
        segments = self.segment_token_index, self.segment_tokens_per_word, self.segment_start
        triton_sum = _triton_segment_sum(table.device)
        if triton_sum is not None:
            triton_sum(table, self.states[layer], *segments, self.segment_word_id)
            return
        index, n_tokens, start = segments
        weights = n_tokens.reciprocal()
        sums = F.embedding_bag(index, self._float(layer), start, mode="sum", per_sample_weights=weights)
        table.index_add_(0, self.segment_word_id, sums)

    def sentences(self, layer: int) -> Tensor:
        """The mean state of each sentence's tokens, without special tokens (S, D)."""
        key = (layer, "sentence")
        if key not in self._cache:
            offsets = _offsets(self.tokens_per_sentence)
            self._cache[key] = F.embedding_bag(self.token_index, self._float(layer), offsets, mode="mean")
        return self._cache[key]

    def text_vectors(self) -> Tensor:
        """The teacher's own vector of each sentence, special tokens included: that of its last layer (S, text_dim).

        A sentence of several windows has the vector of its first one. A teacher that is no sentence-transformers folder
        has the mean over all tokens.
        """
        teacher, key = self.teacher, "text vectors"
        head = teacher.head or SentenceHead(teacher.dim)
        if key not in self._cache:
            before, after = len(teacher.tokenizer.prefix), len(teacher.tokenizer.suffix)
            first = self.token_index[_offsets(self.tokens_per_sentence)]
            n_tokens = self.tokens_per_sentence.clamp(max=teacher.window - before - after)
            n_prompt = before if head.prompt else 0
            states, lengths = self._float(teacher.depth), n_tokens + before + after
            self._cache[key] = head.vectors(states, first - before, lengths, n_prompt)
        return self._cache[key]

    def to_device(self, array: NDArray[Any]) -> Tensor:
        """An integer array as an int64 tensor on the device, without waiting for a GPU."""
        return self.copier.copy({"array": array})["array"]

    def _float(self, layer: int) -> Tensor:
        if layer not in self._cache:
            self._cache[layer] = self.states[layer].float()
        return self._cache[layer]

    def _pool(self, layer: int, pooling: str) -> Tensor:
        states, offsets = self._float(layer), _offsets(self.tokens_per_word)
        if pooling in ("mean", "max"):
            return F.embedding_bag(self.word_token_index, states, offsets, mode=pooling)
        if pooling == "min":
            return -F.embedding_bag(self.word_token_index, -states, offsets, mode="max")
        if pooling == "first":
            return states[self.word_token_index[offsets]]
        if pooling == "last":
            return states[self.word_token_index[offsets + self.tokens_per_word - 1]]
        raise UsageError.unknown("token pooling", pooling, ("mean", "first", "last", "max", "min"))


@cache
def _triton_segment_sum(device: torch.device) -> Callable[..., None] | None:
    """The Triton kernel, where it compiles and adds correctly; tried once per device."""
    if device.type != "cuda":
        return None
    try:
        from stillvec.encoding.triton_segment_sum import add_segments, self_test

        self_test(device)
    except Exception as error:  # whatever is missing, torch can do it in three steps
        _log.warning("Triton is not used to sum states on %s, which is slower: %r", device, error)
        return None
    return add_segments


def _offsets(lengths: Tensor) -> Tensor:
    return torch.cumsum(lengths, 0) - lengths
