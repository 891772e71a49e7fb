"""The base of the methods that gensim trains, on our sentences and vocabulary.

gensim's threads share one table without locks, so only a single thread gives the same bytes twice; no checkpoints.
Written against gensim 4.4, which reports progress only to its log and at the end of an epoch: its private method
`_log_progress`, called about once a second, is replaced.
"""

import importlib.metadata
import queue
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stillvec.baselines.baseline import Resources, check_settings
from stillvec.baselines.encoded_corpus import EncodedCorpus, as_token
from stillvec.registry import require
from stillvec.result import Result
from stillvec.training.schedule import TrainingProgress, divergence_error
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_WORDS_PER_THREAD = 10_000  # at least: gensim cuts the file into as many parts as threads


@dataclass(frozen=True)
class GensimBaseline:
    """The settings that word2vec's models share."""

    resumes: ClassVar[bool] = False
    RENAMED: ClassVar[Mapping[str, str]] = {}
    settings: str = "stillvec"  # or a paper's settings, by their name
    dim: int = 300  # dimensions of the vectors
    epochs: int = 15  # passes over the corpus
    window: int = 5  # largest distance of a context word; the actual one is drawn per word
    negatives: int = 5  # negatives per target
    subsample: float = 1e-4  # t: a word is kept with probability sqrt(t/f) + t/f
    rate: float = 0.05  # initial learning rate; falls to a hundredth
    power: float = 0.75  # exponent of the word counts when negatives are drawn
    add_contexts: bool = False  # add each word's context vector to its own (Levy et al. 2015)
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        check_settings(self, ("dim", "epochs", "window", "rate", "negatives"), ("subsample", "seed"))

    def model(self, vocabulary: Vocabulary, workers: int) -> Any:
        """gensim's model, not yet trained."""
        raise NotImplementedError

    def vectors(self, model: Any, corpus: EncodedCorpus) -> WordVectors:
        """Vectors of the words of the corpus; gensim's rows are in our order."""
        matrix = model.wv.vectors + model.syn1neg if self.add_contexts else model.wv.vectors
        return WordVectors(corpus.known, np.asarray(matrix, np.float32))

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        workers = max(1, min(resources.threads, corpus.n_words // _WORDS_PER_THREAD))
        model = self.model(corpus.vocabulary, workers)
        counts = dict(zip(map(as_token, corpus.known), corpus.known.counts.tolist(), strict=True))
        model.build_vocab_from_freq(counts, corpus_count=corpus.n_sentences)
        for words in train_gensim(model, corpus.lines, corpus.n_sentences, corpus.n_words, self.epochs):
            yield TrainingProgress(words, self.epochs * corpus.n_words)
        vectors = self.vectors(model, corpus)
        if not np.isfinite(vectors.matrix).all():
            raise divergence_error(self.rate)
        notes = {"made_by": f"gensim {importlib.metadata.version('gensim')}", "threads": workers}
        return Result(vectors, notes | self.notes(model))

    def notes(self, model: Any) -> dict[str, Any]:
        return {}

    def gensim_settings(self, workers: int) -> dict[str, Any]:
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
            "sorted_vocab": 0,  # ours is sorted by frequency
        }


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
