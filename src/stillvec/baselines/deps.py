"""Deps (Levy & Goldberg 2014): skip-gram whose contexts are what a word depends on and what depends on it.

    sum over pairs (w, c) of the parses:   l(v_w . u_c) + sum over negatives c' of l(-v_w . u_c')

c is a word with its relation (`scientist/nsubj`, `discovers/nsubj-1`). AdaGrad on some pairs at once that share their
negatives; several threads share the tables without locks, so only one gives the same bytes twice.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.baselines.baseline import Resources, TrainingStep, check_settings, diverged
from stillvec.baselines.dependencies import Relations, contexts
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.baselines.negatives import (
    AdaGradTable,
    SharedNegativeSampler,
    keep_probability,
    negative_sampling_loss,
    random_rows,
    summed,
)
from stillvec.errors import CorpusError
from stillvec.result import Result
from stillvec.teachers.threads import torch_threads

_PARSES = 10_000  # read at once
_BLOCK = 1 << 20  # pairs that are mixed


@dataclass(frozen=True)
class Deps:
    resumes: ClassVar[bool] = True
    parsed: ClassVar[bool] = True  # it needs parses
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "levy-goldberg-2014": {"negatives": 15, "least": 100, "subsample": 0.0},
    }
    settings: str = "stillvec"
    dim: int = 300
    epochs: int = 5
    least: int = 2  # how often a context is met, at the least
    negatives: int = 10  # a pair
    shared: int = 512  # drawn for a batch
    subsample: float = 1e-4  # t: a pair is kept with probability sqrt(t/f) + t/f of its word
    power: float = 0.75  # of the counts of contexts, for negatives
    batch: int = 512  # pairs
    rate: float = 0.05  # falls to a hundredth
    seed: int = 0

    def __post_init__(self) -> None:
        above: dict[str, float] = {"dim": self.dim, "epochs": self.epochs, "least": self.least, "batch": self.batch}
        above |= {"negatives": self.negatives, "shared": self.shared, "rate": self.rate}
        check_settings(self, above, {"subsample": self.subsample, "seed": self.seed})

    def steps(self, text: EncodedCorpus, means: Resources) -> Generator[TrainingStep, None, Result]:
        total = self.epochs * text.words
        with tempfile.TemporaryDirectory(dir=text.folder) as folder:
            reading = read_pairs(text, Path(folder), self.least)
            while True:
                try:
                    read = next(reading)
                except StopIteration as end:
                    pairs: DependencyPairs = end.value
                    break
                yield TrainingStep(0, total, f"{read:,} parses read")
            model = DepsModel(self, pairs)
            loss = yield from self._train(model, pairs, text.words, means)
            vectors = model.words.rows.numpy()
            if not np.isfinite(vectors).all():
                raise diverged(self.rate)
            notes: dict[str, float] = {"pairs": len(pairs.words), "contexts": len(pairs.context_counts)}
            notes |= {"loss": loss} if math.isfinite(loss) else {}
            return Result(text.learnt(vectors, pairs.word_counts > 0), notes)

    def _train(
        self, model: DepsModel, pairs: DependencyPairs, words: int, means: Resources
    ) -> Generator[TrainingStep, None, float]:
        begun = means.checkpoint.restore(model) if means.checkpoint is not None else 0
        loss, total, number = math.nan, self.epochs * words, len(pairs.words)
        with torch_threads(1), ThreadPoolExecutor(means.threads) as pool:
            apply = pool.map if means.threads > 1 else map
            for epoch in range(begun, self.epochs):
                sums = targets = passed = 0.0
                for first in range(0, number, _BLOCK):
                    rate = self.rate * max(0.01, 1 - (epoch + first / number) / self.epochs)
                    for some, its_loss, size in apply(model.learn, model.jobs(pairs, first, rate, (self.seed, epoch))):
                        sums, targets, passed = sums + its_loss, targets + some, passed + size
                        remark = f"loss {sums / max(targets, 1):.4f}"
                        yield TrainingStep(int(words * (epoch + passed / number)), total, remark)
                    if not math.isfinite(sums):
                        raise diverged(self.rate)
                loss = sums / max(targets, 1)
                if means.checkpoint is not None:
                    means.checkpoint.write(model, epoch + 1)
        return loss


class DependencyPairs(NamedTuple):
    words: NDArray[np.int64]  # (P,) rows of the vocabulary
    contexts: NDArray[np.int64]  # (P,) rows of the contexts
    word_counts: NDArray[np.int64]  # (V,) pairs of each word
    context_counts: NDArray[np.int64]  # (C,)


def read_pairs(text: EncodedCorpus, folder: Path, least: int) -> Generator[int, None, DependencyPairs]:
    """The pairs whose words are known and whose context is met often enough; yields the number of parses read."""
    size = len(text.vocabulary)
    relations = Relations()
    path = folder / "pairs"
    read = 0
    with open(path, "wb") as stream:
        held: list[int] = []
        for read, parse in enumerate(text.parses(), 1):
            rows = text.rows_of(parse)
            for word, other, relation in contexts(parse):
                if rows[word] >= 0 and rows[other] >= 0:
                    held += (rows[word], rows[other] + size * relations.number(relation))
            if read % _PARSES == 0:
                stream.write(np.array(held, np.int64).tobytes())
                held = []
                yield read
        stream.write(np.array(held, np.int64).tobytes())
    if not path.stat().st_size:
        raise CorpusError(
            f"No two known words depend on each other in {read:,} parses; give more, or a lower --min-count."
        )
    every = np.memmap(path, np.int64, "r").reshape(-1, 2)
    keys, place, counts = np.unique(every[:, 1], return_inverse=True, return_counts=True)
    stay = counts >= least
    if not stay.any():
        raise CorpusError(
            f"No context is met {least:,} times: of {len(keys):,} the most frequent is met {counts.max():,} times; "
            f"give more parses, or a lower least (deps:least={counts.max()})."
        )
    row = np.where(stay, np.cumsum(stay) - 1, -1)
    found = row[place]
    here = found >= 0
    words = np.array(every[:, 0])[here]
    return DependencyPairs(words, found[here], np.bincount(words, minlength=size), counts[stay])


class DepsJob(NamedTuple):
    """What a thread does at a time."""

    words: NDArray[np.int64]  # (P,)
    contexts: NDArray[np.int64]  # (P,)
    rate: float
    seed: tuple[int, ...]


class DepsModel:
    """A table of words and one of contexts."""

    def __init__(self, settings: Deps, pairs: DependencyPairs) -> None:
        self.settings = settings
        self.noise = SharedNegativeSampler(pairs.context_counts, settings.power)
        self.kept = keep_probability(pairs.word_counts, settings.subsample)
        self.words = AdaGradTable(random_rows(len(pairs.word_counts), settings.dim, settings.seed))
        self.contexts = AdaGradTable(torch.zeros(len(pairs.context_counts), settings.dim))

    def tensors(self) -> dict[str, Tensor]:
        named = {"words": self.words, "contexts": self.contexts}
        return {f"{name}.{part}": getattr(table, part) for name, table in named.items() for part in ("rows", "squares")}

    def jobs(self, pairs: DependencyPairs, first: int, rate: float, seed: tuple[int, ...]) -> Iterator[DepsJob]:
        """A block of pairs in a random order, a batch at a time."""
        last = min(first + _BLOCK, len(pairs.words))
        order = first + np.random.default_rng((*seed, first)).permutation(last - first)
        for begin in range(0, len(order), self.settings.batch):
            some = order[begin : begin + self.settings.batch]
            yield DepsJob(pairs.words[some], pairs.contexts[some], rate, (*seed, first, begin))

    def learn(self, job: DepsJob) -> tuple[int, float, int]:
        """One batch; gives the pairs learnt, their loss, all pairs."""
        choose = np.random.default_rng(job.seed)
        stay = choose.random(len(job.words)) < self.kept[job.words]
        if not stay.any():
            return 0, 0.0, len(job.words)
        words, found = torch.from_numpy(job.words[stay]), torch.from_numpy(job.contexts[stay])
        loss, rows, gradient, outer, by_outer = self.gradients(
            words, found, self.noise.draw(self.settings.shared, choose)
        )
        self.words.update(rows, gradient, job.rate)
        self.contexts.update(outer, by_outer, job.rate)
        return len(words), float(loss), len(job.words)

    def gradients(self, words: Tensor, found: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The loss; the rows of words it touches and its gradient by them; the same of contexts."""
        vectors = self.words.rows.index_select(0, words)
        loss, by_vectors, outer, by_outer = negative_sampling_loss(
            vectors, self.contexts.rows, found, drawn, self.settings.negatives
        )
        return loss, *summed(words, torch.arange(len(words)), by_vectors), outer, by_outer
