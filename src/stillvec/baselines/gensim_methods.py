"""Skip-gram and CBOW (Mikolov et al. 2013) and fastText (Bojanowski et al. 2017), which gensim trains.

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
from typing import Any, ClassVar, Literal

import numpy as np

from stillvec.baselines.baseline import Resources, SampledBaseline
from stillvec.baselines.encoded_corpus import EncodedCorpus, as_token
from stillvec.errors import UsageError
from stillvec.registry import require
from stillvec.result import Result
from stillvec.training.schedule import TrainingProgress, divergence_error
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_BUCKETS = 2_000_000  # of fastText, the paper's
_BUCKETS_PER_WORD = 20  # a word brings fewer n-grams that no other word has
_WORDS_PER_THREAD = 10_000  # at least: gensim cuts the file into as many parts as threads


@dataclass(frozen=True)
class GensimBaseline(SampledBaseline):
    GENSIM: ClassVar[str] = "Word2Vec"  # the class of gensim
    ARGUMENTS: ClassVar[Mapping[str, int]] = {}  # of that class, which are no setting of ours
    resumes = False
    has_contexts = True
    epochs: int = 15  # passes over the corpus
    window: int = 5  # largest distance of a context word; the actual one is drawn per word
    negatives: int = 5  # negatives per target
    add_contexts: bool = False  # add each word's context vector to its own (Levy et al. 2015)

    def arguments(self, vocabulary: Vocabulary) -> dict[str, int]:
        """What gensim's model is given beside the settings that all have."""
        return {**self.ARGUMENTS}

    def model(self, vocabulary: Vocabulary, workers: int) -> Any:
        """gensim's model, not yet trained."""
        module = require(f"gensim.models.{self.GENSIM.lower()}", "train", type(self).__name__)
        return getattr(module, self.GENSIM)(
            vector_size=self.dim,
            window=self.window,
            negative=self.negatives,
            sample=self.subsample,
            alpha=self.rate,
            min_alpha=self.rate / 100,
            ns_exponent=self.power,
            epochs=self.epochs,
            seed=self.seed,
            workers=workers,
            min_count=1,
            sorted_vocab=0,  # ours is sorted by frequency
            **self.arguments(vocabulary),
        )

    def vectors(self, model: Any, corpus: EncodedCorpus) -> WordVectors:
        """Vectors of the words of the corpus; gensim's rows are in our order."""
        matrix = model.wv.vectors + model.syn1neg if self.add_contexts else model.wv.vectors
        return WordVectors(corpus.known, np.asarray(matrix, np.float32), contexts=model.syn1neg)

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


@dataclass(frozen=True)
class Skipgram(GensimBaseline):
    """A word predicts the words around it."""

    SUMMARY = "trained to predict the words around it (no teacher)"
    PAPERS = ("mikolov-2013",)
    PRESETS: ClassVar = {"mikolov-2013": {"rate": 0.025, "subsample": 1e-5, "epochs": 1}}
    ARGUMENTS: ClassVar = {"sg": 1}


@dataclass(frozen=True)
class Cbow(GensimBaseline):
    """The mean of the words around a word predicts it."""

    SUMMARY = "trained to predict a word from those around it (no teacher)"
    PAPERS, PRESETS = Skipgram.PAPERS, Skipgram.PRESETS
    ARGUMENTS: ClassVar = {"sg": 0, "cbow_mean": 1}
    epochs: int = 40  # passes over the corpus


@dataclass(frozen=True)
class FastText(GensimBaseline):
    """A word's vector is the mean of its own and of its character n-grams' vectors.

    Words that the corpus lacks (`--include-words`) get the mean of their n-grams.
    """

    GENSIM = "FastText"
    SUMMARY = "trained as skip-gram, with its character n-grams (no teacher)"
    PAPERS = ("bojanowski-2017",)
    RENAMED: ClassVar = {"of": "architecture", "shortest": "min_n", "longest": "max_n"}
    PRESETS: ClassVar = {"bojanowski-2017": {"epochs": 5, "min_n": 3, "buckets": _BUCKETS}}
    architecture: Literal["skipgram", "cbow"] = "skipgram"  # which of word2vec's models: skipgram or cbow
    min_n: int = 4  # characters of the shortest n-gram, including the boundary mark at each end of a word
    max_n: int = 6  # characters of the longest n-gram
    buckets: int | None = None  # rows for hashed n-grams; none: 20 per word of the vocabulary, 2 million at most

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_n < self.min_n:
            raise UsageError.expected(f"min_n={self.min_n} or more", self.max_n, where="setting 'max_n' of FastText")
        if self.add_contexts:
            raise UsageError.conflict("add_contexts is not available for fasttext", cure="use skipgram or cbow")

    def arguments(self, vocabulary: Vocabulary) -> dict[str, int]:
        buckets = self.buckets or min(_BUCKETS, _BUCKETS_PER_WORD * len(vocabulary))
        return {"sg": int(self.architecture == "skipgram"), "min_n": self.min_n, "max_n": self.max_n, "bucket": buckets}

    def vectors(self, model: Any, corpus: EncodedCorpus) -> WordVectors:
        matrix = np.stack([model.wv.get_vector(as_token(word)) for word in corpus.vocabulary])
        contexts = np.zeros(matrix.shape, np.float32)  # a word that the corpus lacks is no context
        contexts[corpus.known.rows_in(corpus.vocabulary)] = model.syn1neg
        return WordVectors(corpus.vocabulary, np.asarray(matrix, np.float32), contexts=contexts)

    def notes(self, model: Any) -> dict[str, Any]:
        return {"buckets": model.wv.bucket}


def train_gensim(model: Any, lines: Path, n_sentences: int, n_words: int, epochs: int) -> Iterator[int]:
    """Train on a file of sentences in a background thread; yields the number of words read, over all epochs."""
    events: queue.SimpleQueue[int | BaseException | None] = queue.SimpleQueue()
    stopped = threading.Event()
    callbacks = require("gensim.models.callbacks", "train", "Training")

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
            totals = {"total_examples": n_sentences, "total_words": n_words}
            model.train(corpus_file=str(lines), **totals, epochs=epochs, callbacks=[callback])
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
