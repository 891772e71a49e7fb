"""gensim's skip-gram (Mikolov et al. 2013) on the same sentences and words: what distilled vectors are held against."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stillvec.registry import require
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary, WordFinder

SKIPGRAM = {
    "vector_size": 100, "window": 5, "negative": 10, "sample": 1e-4, "epochs": 30, "workers": 2, "seed": 0,
}  # fmt: skip  # half a million words need 30 epochs: 10 leave WordSim at 22 instead of 49


def train_skipgram(
    sentences: Iterable[str], vocabulary: Vocabulary, settings: Mapping[str, Any] = SKIPGRAM
) -> WordVectors:
    """Vectors of the vocabulary's words, in its order; the sentences are held in memory."""
    word2vec = require("gensim.models.word2vec", "packaged", "Skip-gram")
    texts = [*as_words([*sentences], vocabulary)]
    model = word2vec.Word2Vec(sg=1, min_count=1, **settings)
    model.build_vocab_from_freq(dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True)))
    model.train(texts, total_examples=len(texts), epochs=model.epochs)
    rows = [model.wv.key_to_index[word] for word in vocabulary]
    return WordVectors(vocabulary, np.asarray(model.wv.vectors[rows], np.float32))


def describe_skipgram(settings: Mapping[str, Any] = SKIPGRAM) -> dict[str, Any]:
    """How they were made, for the manifest."""
    return {
        "method": "skipgram",
        "settings": {"sg": 1, **settings},
        "made_by": f"gensim {importlib.metadata.version('gensim')}",
        "note": "trained by several threads: a second run differs a little",
    }


def as_words(sentences: Sequence[str], vocabulary: Vocabulary) -> Iterator[list[str]]:
    """The known words of each sentence; those that are not known would be left out by gensim too."""
    rows, text = WordFinder(vocabulary).rows(sentences)
    known = rows >= 0
    names = [vocabulary.words[row] for row in rows[known].tolist()]
    ends = np.cumsum(np.bincount(text[known], minlength=len(sentences))).tolist()
    for first, last in zip([0, *ends], ends, strict=False):
        yield names[first:last]
