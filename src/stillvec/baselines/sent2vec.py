"""Sent2vec (Pagliardini et al. 2018): the mean of a sentence's other words and word n-grams predicts each word.

    E = mean of the vectors of all n-grams of S without w;   l(u_w . E) + sum over negatives w' of l(-u_w' . E)

n-grams longer than a word share rows by their hash; those that contain w are left out with it, and some of each
sentence at random (`dropped_ngrams`). Frequent targets are subsampled, contexts are whole. Gradient descent at falling
rates, as in the paper: u is updated target by target, the n-grams once per sentence with all targets together, which
saves most of the time. The result is a word's vector in contexts. Threads share the tables without locks, so only a
single thread gives the same bytes twice.
"""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.baselines.baseline import JobResult, Resources, SampledBaseline, loss_note, train_epochs
from stillvec.baselines.encoded_corpus import EncodedCorpus, Ends, Rows
from stillvec.registry import require
from stillvec.result import Result
from stillvec.training.negative_sampling import NegativeSampler, keep_probability
from stillvec.training.schedule import Schedule, TrainingProgress
from stillvec.vocabulary.token_cache import concatenate_ranges

_LONGEST = 100  # words of a sentence: a single step on many repetitions of a word would be too long
_BLOCK_WORDS = 400_000  # whose sentences are shuffled together
_JOB_SENTENCES = 400
_PAPER = {"dim": 700, "epochs": 9, "word_ngrams": 2, "negatives": 10, "subsample": 5e-6, "buckets": 2_000_000}


@dataclass(frozen=True)
class Sent2vec(SampledBaseline):
    SUMMARY = "trained to predict the other words of its sentence (no teacher)"
    PAPERS = ("pagliardini-2018",)
    RENAMED: ClassVar = {"ngrams": "word_ngrams", "dropped": "dropped_ngrams"}
    PRESETS: ClassVar = {"pagliardini-2018": _PAPER}
    has_contexts = True
    epochs: int = 40  # passes over the corpus
    word_ngrams: int = 1  # words of the longest n-gram; the paper tries 1 and 2
    dropped_ngrams: int = 4  # n-grams left out at random per sentence
    buckets: int | None = None  # rows for hashed n-grams; none: 20 per word of the vocabulary, 2 million at most
    negatives: int = 5  # negatives per target
    power: float = 0.5  # exponent of the word counts when negatives are drawn
    rate: float = 0.2  # initial learning rate; falls to a hundredth

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        model = Sent2vecModel(self, corpus.vocabulary.counts)

        def blocks(epoch: int) -> Iterator[Iterable[Sent2vecJob]]:
            n_before = epoch * corpus.n_words
            for number, (rows, ends) in enumerate(corpus.blocks(_BLOCK_WORDS)):
                lr = model.schedule.lr_at(n_before / (self.epochs * corpus.n_words))
                yield model.jobs(rows, ends, lr, (self.seed, epoch, number))
                n_before += len(rows)

        loss = yield from train_epochs(self, model, blocks, [corpus.n_words], corpus.n_words, resources)
        words = model.sources[: len(corpus.vocabulary)]
        return Result(corpus.vectors(words, contexts=model.targets), loss_note(loss))


class Sent2vecJob(NamedTuple):
    rows: NDArray[np.int64]  # (W,) words of some sentences, one after another
    ends: NDArray[np.int64]  # (S,)
    lr: float
    seed: tuple[int, ...]


class Sent2vecModel:
    """A table of sources (words, then buckets of n-grams) and one of targets."""

    def __init__(self, settings: Sent2vec, counts: NDArray[np.int64]) -> None:
        require("numba", "train", "Sent2vec")
        from stillvec.baselines.compiled_loops import train_sent2vec

        self.train = train_sent2vec
        self.settings = settings
        self.schedule = Schedule(settings.epochs, settings.rate)
        size = len(counts)
        buckets = (settings.buckets or min(2_000_000, 20 * size)) if settings.word_ngrams > 1 else 0
        self.sampler = NegativeSampler(counts, settings.power)
        self.keep = keep_probability(counts, settings.subsample).numpy()
        generator = np.random.default_rng(settings.seed)
        self.sources = generator.random((size + buckets, settings.dim), np.float32)  # (V + B, D)
        self.sources -= 0.5
        self.sources /= settings.dim
        self.targets = np.zeros((size, settings.dim), np.float32)  # (V, D)

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        return {"sources": self.sources, "targets": self.targets}

    def jobs(self, rows: Rows, ends: Ends, lr: float, seed: tuple[int, ...]) -> Iterator[Sent2vecJob]:
        """Whole sentences in random order, some at a time."""
        starts, lengths = _split_long(np.diff(ends, prepend=0))
        order = np.random.default_rng(seed).permutation(len(starts))
        for first in range(0, len(order), _JOB_SENTENCES):
            chosen = order[first : first + _JOB_SENTENCES]
            words = rows[concatenate_ranges(starts[chosen], lengths[chosen])].astype(np.int64)
            yield Sent2vecJob(words, np.cumsum(lengths[chosen]), lr, (*seed, first))

    def train_job(self, job: Sent2vecJob) -> JobResult:
        """Steps on some sentences."""
        generator = np.random.default_rng(job.seed)
        is_target = generator.random(len(job.rows)) < self.keep[job.rows]
        n_targets = int(is_target.sum())
        n_negatives = n_targets * self.settings.negatives
        negatives = self.sampler.draw_stratified(n_negatives, generator).reshape(n_targets, -1)
        dropping = generator.random((len(job.ends), self.settings.dropped_ngrams))
        corpus = (job.rows, job.ends, is_target, negatives, dropping)
        loss = self.train(self.sources, self.targets, *corpus, self.settings.word_ngrams, job.lr)
        return JobResult(n_targets, loss, len(job.rows))


def _split_long(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where sentences begin, and their lengths, with those that are too long split into even parts."""
    n_parts = -(-lengths // _LONGEST)
    part = concatenate_ranges(np.zeros_like(n_parts), n_parts)
    whole, count = np.repeat(lengths, n_parts), np.repeat(n_parts, n_parts)
    begin, end = part * whole // count, (part + 1) * whole // count
    return np.repeat(np.cumsum(lengths) - lengths, n_parts) + begin, end - begin
