"""The base of the methods that gensim trains, on our sentences and vocabulary.

gensim's threads share one table without locks, so only a single thread gives the same bytes twice; gensim keeps no
checkpoint.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stillvec.baselines.baseline import Resources, check_settings
from stillvec.baselines.encoded_corpus import EncodedCorpus, as_token
from stillvec.baselines.gensim_compat import import_gensim, train_gensim
from stillvec.result import Result
from stillvec.training.schedule import TrainingProgress, divergence_error
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

__all__ = ["GensimBaseline", "import_gensim"]

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
