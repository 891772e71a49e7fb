"""gensim's models trained with progress events.

Written against gensim 4.4. gensim reports progress only to its log and, at the end of an epoch, to callbacks; between
them we replace the private method `_log_progress`, called about once a second. Where it is gone, progress is reported
once per epoch.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stillvec.registry import require


def import_gensim(module: str, purpose: str) -> Any:
    return require(f"gensim.models.{module}", "train", purpose)


def train_gensim(model: Any, lines: Path, n_sentences: int, n_words: int, epochs: int) -> Iterator[int]:
    """Train on a file of sentences in a background thread; yields the number of words read, over all epochs."""
    events: queue.SimpleQueue[int | BaseException | None] = queue.SimpleQueue()
    stopped = threading.Event()
    callbacks = import_gensim("callbacks", "Training")

    class EpochCallback(callbacks.CallbackAny2Vec):  # type: ignore[misc, name-defined]
        epoch = 0

        def on_epoch_end(self, model: Any) -> None:
            self.epoch += 1
            events.put(self.epoch * n_words)
            if stopped.is_set():
                raise KeyboardInterrupt

    callback = EpochCallback()

    def log_progress(queued: Any, progress: Any, epoch: int, *numbers: Any) -> None:
        words_read = numbers[2]  # (examples, all examples, words, all words, ...)
        events.put(callback.epoch * n_words + int(words_read))

    def train() -> None:
        try:
            model.train(
                corpus_file=str(lines),
                total_examples=n_sentences,
                total_words=n_words,
                epochs=epochs,
                callbacks=[callback],
            )
            events.put(None)
        except BaseException as error:  # raised again in the thread that waits
            events.put(error)

    model._log_progress = log_progress
    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    try:
        while (event := events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield min(event, epochs * n_words)
    finally:
        stopped.set()
    thread.join()
