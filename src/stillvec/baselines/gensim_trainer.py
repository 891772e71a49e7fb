"""What gensim trains: its own models on our sentences and words, in a thread, watched from here.

Its threads share one table without locks, so only a single one gives the same bytes twice; it keeps no checkpoint.
"""

from __future__ import annotations

import importlib.metadata
import queue
import threading
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stillvec.baselines.baseline import Resources, TrainingStep, check_settings, diverged
from stillvec.baselines.encoded_corpus import EncodedCorpus, as_token
from stillvec.registry import require
from stillvec.result import Result
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_LEAST = 10_000  # words for each thread: gensim cuts the file into as many parts
_LOOK = 0.5  # seconds


@dataclass(frozen=True)
class GensimBaseline:
    """The settings that word2vec's models share."""

    resumes: ClassVar[bool] = False
    settings: str = "stillvec"  # or a paper's, by its name in PRESETS
    dim: int = 300
    epochs: int = 15
    window: int = 5  # drawn from 1 to this, word by word
    negatives: int = 5
    subsample: float = 1e-4  # t: a word is kept with probability sqrt(t/f) + t/f
    rate: float = 0.05  # falls to a hundredth
    power: float = 0.75  # of the counts, for negatives
    add_contexts: bool = False  # a word's vector as a context added to its own (Levy et al. 2015)
    seed: int = 0

    def __post_init__(self) -> None:
        above = {"dim": self.dim, "epochs": self.epochs, "window": self.window, "rate": self.rate}
        least = {"subsample": self.subsample, "seed": self.seed}
        check_settings(self, {**above, "negatives": self.negatives}, least)

    def model(self, vocabulary: Vocabulary, workers: int) -> Any:
        """gensim's, not trained."""
        raise NotImplementedError

    def vectors(self, model: Any, text: EncodedCorpus) -> WordVectors:
        """Of the words that the text has; gensim's rows are in our order."""
        matrix = model.wv.vectors + model.syn1neg if self.add_contexts else model.wv.vectors
        return WordVectors(text.known, np.asarray(matrix, np.float32))

    def steps(self, text: EncodedCorpus, means: Resources) -> Generator[TrainingStep, None, Result]:
        workers = max(1, min(means.threads, text.words // _LEAST))
        model = self.model(text.vocabulary, workers)
        known = text.known
        model.build_vocab_from_freq(
            dict(zip(map(as_token, known), known.counts.tolist(), strict=True)), corpus_count=text.sentences
        )
        yield from _watched(model, text, self.epochs)
        vectors = self.vectors(model, text)
        if not np.isfinite(vectors.matrix).all():
            raise diverged(self.rate)
        notes = {"made_by": f"gensim {importlib.metadata.version('gensim')}", "threads": workers}
        return Result(vectors, notes | self.notes(model))

    def notes(self, model: Any) -> dict[str, Any]:
        return {}

    def common(self, workers: int) -> dict[str, Any]:
        """The settings as gensim calls them."""
        return {
            "vector_size": self.dim,
            "window": self.window,
            "negative": self.negatives,
            "sample": self.subsample,
            "alpha": self.rate,
            "min_alpha": self.rate / 100,
            "ns_exponent": self.power,
            "epochs": self.epochs,
            "seed": self.seed,
            "workers": workers,
            "min_count": 1,
            "sorted_vocab": 0,  # ours is in the order of frequency
        }


def gensim(module: str, purpose: str) -> Any:
    return require(f"gensim.models.{module}", "train", purpose)


def _watched(model: Any, text: EncodedCorpus, epochs: int) -> Generator[TrainingStep, None, None]:
    """gensim trains in a thread of its own, and tells how far it is at the end of an epoch and once a second."""
    told: queue.SimpleQueue[int | BaseException | None] = queue.SimpleQueue()
    stopped = threading.Event()
    callbacks = require("gensim.models.callbacks", "train", "Training")

    class Told(callbacks.CallbackAny2Vec):  # type: ignore[misc, name-defined]
        epoch = 0

        def on_epoch_end(self, model: Any) -> None:
            self.epoch += 1
            told.put(self.epoch * text.words)
            if stopped.is_set():
                raise KeyboardInterrupt

    heard = Told()

    def log_progress(queued: Any, progress: Any, epoch: int, *numbers: Any) -> None:
        raw = numbers[2]  # (examples, all examples, words, all words, ...)
        told.put(heard.epoch * text.words + int(raw))

    def train() -> None:
        try:
            model.train(
                corpus_file=str(text.lines),
                total_examples=text.sentences,
                total_words=text.words,
                epochs=epochs,
                callbacks=[heard],
            )
            told.put(None)
        except BaseException as error:  # told to the thread that waits
            told.put(error)

    model._log_progress = log_progress
    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    try:
        while (news := told.get()) is not None:
            if isinstance(news, BaseException):
                raise news
            yield TrainingStep(min(news, epochs * text.words), epochs * text.words)
    finally:
        stopped.set()
    thread.join()
