"""Sent2vec (Pagliardini et al. 2018): the mean of a sentence's other words and word n-grams tells each word.

    E = mean of the vectors of all n-grams of S without w;   l(u_w . E) + sum over negatives w' of l(-u_w' . E)

n-grams longer than a word share rows by their hash; those that have w in them are left out with it, and some of each
sentence at random (`dropped`). Frequent targets are left out at random, contexts are whole. Steps are AdaGrad's, of
some sentences at once that share their negatives; the paper's are plain, one target at a time. A word's vector is the
one it has in contexts. Several threads share the tables without locks, so only one gives the same bytes twice.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from stillvec.baselines.negatives import Noise, Table, kept_share, random_rows, summed, told_apart
from stillvec.baselines.text import Text
from stillvec.baselines.threads import torch_threads
from stillvec.baselines.training import Learnt, Means, TrainingStep, check_settings, diverged

_WORDS = 200_000  # of a block, in which sentences are mixed
_MULTIPLIER = np.uint64(116049371)  # fastText's, for hashes of word n-grams


@dataclass(frozen=True)
class Sent2vec:
    resumes: ClassVar[bool] = True
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "pagliardini-2018": {"dim": 700, "epochs": 9, "subsample": 5e-6, "dropped": 4, "buckets": 2_000_000},
    }
    settings: str = "stillvec"
    dim: int = 300
    epochs: int = 20
    ngrams: int = 2  # words of the longest
    dropped: int = 4  # n-grams of each sentence
    buckets: int | None = None  # rows for n-grams; None: 20 a word of the vocabulary, 2 million at most
    negatives: int = 10  # a target
    shared: int = 64  # drawn for a batch
    subsample: float = 1e-4  # t: a target is kept with probability sqrt(t/f) + t/f
    power: float = 0.5  # of the counts, for negatives
    batch: int = 64  # sentences
    rate: float = 0.2  # falls to a hundredth
    seed: int = 0

    def __post_init__(self) -> None:
        above: dict[str, float] = {
            "dim": self.dim,
            "epochs": self.epochs,
            "ngrams": self.ngrams,
            "negatives": self.negatives,
        }
        above |= {"shared": self.shared, "batch": self.batch, "rate": self.rate, "buckets": self.buckets or 1}
        check_settings(self, above, {"dropped": self.dropped, "subsample": self.subsample, "seed": self.seed})

    def steps(self, text: Text, means: Means) -> Generator[TrainingStep, None, Learnt]:
        model = Model(self, text.vocabulary.counts)
        total = self.epochs * text.words
        begun = means.checkpoint.restore(model) if means.checkpoint is not None else 0
        loss = math.nan
        with torch_threads(1), ThreadPoolExecutor(means.threads) as pool:
            apply = pool.map if means.threads > 1 else map
            for epoch in range(begun, self.epochs):
                sums = targets = 0.0
                done = epoch * text.words
                for number, (rows, ends) in enumerate(text.blocks(_WORDS)):
                    rate = self.rate * max(0.01, 1 - done / total)
                    jobs = model.jobs(rows, ends, rate, (self.seed, epoch, number))
                    for some, its_loss, words in apply(model.learn, jobs):
                        sums, targets, done = sums + its_loss, targets + some, done + words
                        yield TrainingStep(done, total, f"loss {sums / max(targets, 1):.4f}")
                    if not math.isfinite(sums):
                        raise diverged(self.rate)
                loss = sums / max(targets, 1)
                if means.checkpoint is not None:
                    means.checkpoint.write(model, epoch + 1)
        vectors = model.sources.rows[: len(text.vocabulary)].numpy()
        if not np.isfinite(vectors).all():
            raise diverged(self.rate)
        return Learnt(text.learnt(vectors), {"loss": loss} if math.isfinite(loss) else {})


class Batch(NamedTuple):
    """Sentences as bags of features, and the targets in them; features are words, then buckets of n-grams."""

    features: Tensor  # (F,) sentence by sentence
    starts: Tensor  # (S,) where each sentence's begin
    targets: Tensor  # (T,) words
    sentence: Tensor  # (T,) of each target
    covering: Tensor  # (T, C) features that have the target in them; a weight of 0 where there are fewer
    weights: Tensor  # (T, C)


class Job(NamedTuple):
    """What a thread does at a time."""

    rows: NDArray[np.int64]  # (W,) words of some sentences, one after the other
    lengths: NDArray[np.int64]  # (S,)
    rate: float
    seed: tuple[int, ...]


class Model:
    """A table of sources (words, buckets) and one of targets."""

    def __init__(self, settings: Sent2vec, counts: NDArray[np.int64]) -> None:
        self.settings = settings
        self.words = len(counts)
        asked = settings.buckets or min(2_000_000, 20 * self.words)
        self.buckets = asked if settings.ngrams > 1 else 0
        self.noise = Noise(counts, settings.power)
        self.kept = kept_share(counts, settings.subsample)
        self.sources = Table(random_rows(self.words + self.buckets, settings.dim, settings.seed))
        self.targets = Table(torch.zeros(self.words, settings.dim))

    def tensors(self) -> dict[str, Tensor]:
        named = {"sources": self.sources, "targets": self.targets}
        return {f"{name}.{part}": getattr(table, part) for name, table in named.items() for part in ("rows", "squares")}

    def jobs(
        self, rows: NDArray[np.int32], ends: NDArray[np.int64], rate: float, seed: tuple[int, ...]
    ) -> Iterator[Job]:
        """Whole sentences in a random order, a batch at a time."""
        starts, lengths = np.concatenate([[0], ends[:-1]]), np.diff(ends, prepend=0)
        order = np.random.default_rng(seed).permutation(len(ends))
        for first in range(0, len(order), self.settings.batch):
            some = order[first : first + self.settings.batch]
            words = rows[ranges(starts[some], lengths[some])].astype(np.int64)
            yield Job(words, lengths[some], rate, (*seed, first))

    def learn(self, job: Job) -> tuple[int, float, int]:
        """One batch; gives its targets, their loss, its words."""
        choose = np.random.default_rng(job.seed)
        batch = self.batch(job.rows, job.lengths, choose)
        drawn = self.noise.draw(self.settings.shared, choose)
        loss = self.step(batch, drawn, job.rate) if len(batch.targets) else 0.0
        return len(batch.targets), loss, len(job.rows)

    def batch(self, rows: NDArray[np.int64], lengths: NDArray[np.int64], choose: np.random.Generator) -> Batch:
        """Features and targets of sentences that lie one after the other."""
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        target = np.flatnonzero(choose.random(len(rows)) < self.kept[rows])
        features, owners, covering = [rows], [sentence], [rows[target]]
        for size, grams in self.grams(rows, sentence, choose):
            here = np.flatnonzero(grams >= 0)
            features.append(grams[here])
            owners.append(sentence[here])
            for back in range(size):  # the n-grams that begin at the target, and those that begin before it
                before = target - back
                covering.append(np.where(before >= 0, grams[before], -1))
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        inside = np.stack(covering, 1)
        return Batch(
            torch.from_numpy(np.concatenate(features)[order]),
            torch.from_numpy(np.searchsorted(owner[order], np.arange(len(lengths)))),
            torch.from_numpy(rows[target]),
            torch.from_numpy(sentence[target]),
            torch.from_numpy(np.maximum(inside, 0)),
            torch.from_numpy((inside >= 0).astype(np.float32)),
        )

    def grams(
        self, rows: NDArray[np.int64], sentence: NDArray[np.int64], choose: np.random.Generator
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """For each length from 2, the feature of the n-gram that begins at each word, -1 where none does or stays."""
        found, hashed = [], rows.astype(np.uint64)
        for size in range(2, self.settings.ngrams + 1):
            if len(rows) < size:
                break
            hashed = hashed[:-1] * _MULTIPLIER + rows[size - 1 :].astype(np.uint64)
            whole = sentence[size - 1 :] == sentence[: 1 - size]
            grams = np.where(whole, (hashed % np.uint64(self.buckets)).astype(np.int64) + self.words, -1)
            found.append(np.concatenate([grams, np.full(size - 1, -1)]))
        if found and self.settings.dropped:
            _drop(np.stack(found), sentence, self.settings.dropped, choose, found)
        yield from enumerate(found, 2)

    def step(self, batch: Batch, drawn: Tensor, rate: float) -> float:
        """One batch; gives its loss."""
        loss, rows, gradient, outer, by_outer = self.gradients(batch, drawn)
        self.sources.update(rows, gradient, rate)
        self.targets.update(outer, by_outer, rate)
        return float(loss)

    def gradients(self, batch: Batch, drawn: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The loss; the rows of sources it touches and its gradient by them; the same of targets."""
        table, number = self.sources.rows, len(batch.features)
        whole = F.embedding_bag(batch.features, table, batch.starts, mode="sum")  # (S, D)
        inside = F.embedding_bag(batch.covering, table, mode="sum", per_sample_weights=batch.weights)  # (T, D)
        held = torch.diff(batch.starts, append=torch.tensor([number]))  # (S,)
        size = (held[batch.sentence] - batch.weights.sum(1))[:, None]  # (T, 1)
        contexts = whole.index_select(0, batch.sentence).sub_(inside).div_(size)
        loss, by_contexts, outer, by_outer = told_apart(
            contexts, self.targets.rows, batch.targets, drawn, self.settings.negatives
        )
        by_contexts /= size
        by_sentence = torch.zeros_like(whole).index_add_(0, batch.sentence, by_contexts)
        covered = batch.weights.bool()
        places = torch.nonzero(covered)[:, 0] + len(whole)
        sources = torch.cat([torch.repeat_interleave(torch.arange(len(whole)), held), places])
        features = torch.cat([batch.features, batch.covering[covered]])
        rows, gradient = summed(features, sources, torch.cat([by_sentence, by_contexts.neg_()]))
        return loss, rows, gradient, outer, by_outer


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """starts[0], starts[0] + 1, ..., for all of them one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths))


def _drop(
    grams: NDArray[np.int64],
    sentence: NDArray[np.int64],
    number: int,
    choose: np.random.Generator,
    found: list[NDArray[np.int64]],
) -> None:
    """So many n-grams of each sentence become -1, by a random key each."""
    size, place = np.nonzero(grams >= 0)
    owner = sentence[place]
    order = np.lexsort((choose.random(len(owner)), owner))
    ordered = owner[order]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    gone = order[rank < number]
    for each in range(len(found)):
        found[each][place[gone[size[gone] == each]]] = -1
