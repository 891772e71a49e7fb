"""Text → batches, ahead of the teacher: in a thread for a CPU, in processes for a GPU."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeVar

import torch

from stillvec.corpus import sentence_ends, split_sentences
from stillvec.corpus.text_chunk import StreamPosition, TextChunk, TextUnit
from stillvec.corpus.worker_pool import MAX_WORKERS, WorkerPool, available_cores, can_fork
from stillvec.encoding.batch import Batch, make_batches
from stillvec.encoding.caching_tokenizer import CachingTokenizer, TokenizedTexts, align_words, tokenize_paragraphs
from stillvec.teachers import SubwordTokenizer, Teacher
from stillvec.vocabulary import WordMatcher

T = TypeVar("T")
_STATE_MEMORY = 0.15  # of a GPU's memory, for the states of a batch


@dataclass(frozen=True)
class BatchBudget:
    """How much the teacher gets at once, and how many processes prepare it."""

    n_tokens: int  # per batch, padding included
    n_sentences: int  # per chunk: sorted by length together
    workers: int = 0  # processes that prepare batches; 0: one thread

    @classmethod
    def for_teacher(cls, teacher: Teacher, threads: int | None = None) -> BatchBudget:
        """On a GPU as much as it reads efficiently and has memory for with all layers requested.

        Of the threads (default: this process's share of the cores) one drives the GPU and one reads the text.
        """
        if teacher.device.type != "cuda":
            return cls(4_096, 2_048)
        memory = torch.cuda.get_device_properties(teacher.device).total_memory
        token_bytes = (2 + 4) * (teacher.depth + 1) * teacher.dim  # in half precision, and in fp32
        n_tokens = int(min(262_144, max(4_096, _STATE_MEMORY * memory / token_bytes)))
        threads = threads or available_cores()
        return cls(n_tokens, 16_384, max(1, min(MAX_WORKERS, threads - 2)) if can_fork() and threads > 1 else 0)


@dataclass(frozen=True)
class BatchBuilder:
    """Makes the batches of a chunk of text."""

    tokenizer: SubwordTokenizer
    matcher: WordMatcher
    window: int
    pad: int
    n_tokens: int  # per batch
    packed: bool = False

    @classmethod
    def for_teacher(cls, teacher: Teacher, matcher: WordMatcher, budget: BatchBudget) -> BatchBuilder:
        packed = teacher.packing is not None
        return cls(teacher.tokenizer, matcher, teacher.window, teacher.pad, budget.n_tokens, packed)

    def __call__(self, chunk: TextChunk) -> list[Batch]:
        texts = self._tokenize(chunk)
        limits = {"window": self.window, "pad": self.pad, "budget": self.n_tokens}
        return [*make_batches(texts, self.tokenizer, **limits, packed=self.packed)]

    def _tokenize(self, chunk: TextChunk) -> TokenizedTexts:
        texts = chunk.texts
        if chunk.unit is TextUnit.WHOLE_PARAGRAPHS:
            ends = [sentence_ends(text) for text in texts]
            return tokenize_paragraphs(texts, chunk.spans or self.matcher.match(texts), self.tokenizer, ends)
        if chunk.unit is TextUnit.PARAGRAPHS:
            texts = [sentence for paragraph in texts for sentence in split_sentences(paragraph)]
        if chunk.spans is None:
            return self._cache.tokenize(texts)
        return align_words(self.tokenizer.encode(texts), chunk.spans)[0]

    @cached_property
    def _cache(self) -> CachingTokenizer:
        return CachingTokenizer(self.tokenizer, self.matcher)


class TextSize(NamedTuple):
    """An amount of text for a teacher."""

    n_tokens: int = 0
    n_texts: int = 0

    def scale(self, factor: float) -> TextSize:
        return TextSize(round(self.n_tokens * factor), round(self.n_texts * factor))

    @classmethod
    def sum(cls, sizes: Iterable[TextSize]) -> TextSize:
        tokens, texts = 0, 0
        for n_tokens, n_texts in sizes:
            tokens, texts = tokens + n_tokens, texts + n_texts
        return cls(tokens, texts)

    @classmethod
    def of(cls, batches: Iterable[Batch]) -> TextSize:
        return cls.sum(cls(len(batch.token_index), len(batch.tokens_per_sentence)) for batch in batches)


NO_TEXT = TextSize()


@dataclass
class Bookmark:
    """How far batches were taken."""

    chunks: int = 0  # read completely
    batches: int = 0  # of the next chunk
    size: TextSize = NO_TEXT  # of what was taken when reading began
    total: TextSize = NO_TEXT  # of the stream, estimated until its end is known


class BatchLoader:
    """Gives batches in the order of the texts, prepared ahead of time. A context manager."""

    def __init__(self, builder: BatchBuilder, workers: int = 0) -> None:
        self._builder, self._workers = builder, workers
        self._pool: WorkerPool[Batch] | None = None

    def __enter__(self) -> BatchLoader:
        if self._workers:
            self._pool = WorkerPool(self._builder, self._workers)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.close()

    def batches(self, chunks: Iterable[TextChunk], bookmark: Bookmark | None = None) -> Iterator[Batch]:
        """Batches from the bookmark on, which moves along; chunks that were read are skipped, not prepared."""
        return self.convert(iter, chunks, bookmark)

    def convert(
        self,
        function: Callable[[Iterator[Batch]], Iterator[T]],
        chunks: Iterable[TextChunk],
        bookmark: Bookmark | None = None,
    ) -> Iterator[T]:
        """What `function` makes of each batch, in order; it may take batches before it gives what it made of others."""
        bookmark = bookmark or Bookmark()
        first, n_read = bookmark.chunks, bookmark.batches
        rest = islice(chunks, first, None)
        here = ((chunk.position, self._builder(chunk)) for chunk in rest)
        prepared = here if self._pool is None else self._pool.results(rest)
        measured = _measure(prepared, bookmark.size, n_read)
        numbered = (
            (chunk, total, number, batch)
            for chunk, (total, batches) in enumerate(measured, first)
            for number, batch in enumerate(batches)
            if chunk > first or number >= n_read
        )
        ready = numbered if self._pool is not None else prefetch(numbered, depth=16)
        taken: deque[tuple[int, TextSize, int]] = deque()  # batches that the function has

        def take() -> Iterator[Batch]:
            for chunk, total, number, batch in ready:
                taken.append((chunk, total, number))
                yield batch

        for item in function(take()):
            bookmark.chunks, bookmark.total, number = taken.popleft()
            bookmark.batches = number + 1
            yield item


def _measure(
    prepared: Iterable[tuple[StreamPosition, list[Batch]]], size: TextSize, n_read: int
) -> Iterator[tuple[TextSize, list[Batch]]]:
    """The batches of each chunk with the size of the whole stream, as what was prepared so far suggests.

    `size` is that of what was read before, the first `n_read` batches of the first chunk included.
    """
    for position, batches in prepared:
        size, n_read = TextSize.sum([size, TextSize.of(batches[n_read:])]), 0
        yield size.scale(position.total / position.done if position.done else 0.0), batches


def prefetch(items: Iterable[T], depth: int) -> Iterator[T]:
    """Make up to `depth` items ahead in a thread; its errors are raised here, and it ends with this generator."""
    ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def put(item: T | None, error: BaseException | None) -> None:
        while not stop.is_set():
            with suppress(queue.Full):
                ready.put((item, error), timeout=0.2)
                return

    def work() -> None:
        try:
            for item in items:
                put(item, None)
                if stop.is_set():
                    return
        except BaseException as error:  # raised in the consumer
            put(None, error)
            return
        put(None, None)

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        stop.set()
