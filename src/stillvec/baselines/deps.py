"""Deps (Levy & Goldberg 2014): skip-gram whose contexts are a word's heads and modifiers in dependency parses.

    sum over pairs (w, c) of the parses:   l(v_w . u_c) + sum over negatives c' of l(-v_w . u_c')

c is a word with its relation (`scientist/nsubj`): a modifier is a context of its head and, by the inverse relation
(`discovers/nsubj-1`), the head one of the modifier. A preposition is part of the relation (`telescope/nmod_with`),
whether it is a `case` of its noun (Universal Dependencies) or a `prep` between head and noun (`pobj`, in Stanford's and
spaCy's schemes). AdaGrad on batches of pairs that share their
negatives. Threads share the tables without locks, so only a single thread gives the same bytes twice.
"""

import tempfile
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.baselines.baseline import JobResult, Resources, SampledBaseline, loss_note, train_epochs
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.corpus.conllu import Parse
from stillvec.errors import CorpusError
from stillvec.progress import relay
from stillvec.result import Result
from stillvec.training.negative_sampling import NegativeSampler, keep_probability, negative_sampling_loss
from stillvec.training.optimizers import RowAdaGrad, random_rows, sum_by_row
from stillvec.training.schedule import Schedule, TrainingProgress
from stillvec.vocabulary.folding import fold

_PARSES = 10_000  # read at once
_BLOCK = 1 << 20  # pairs that are shuffled together


@dataclass(frozen=True)
class Deps(SampledBaseline):
    SUMMARY = "trained on its heads and modifiers in parses (no teacher)"
    PAPERS = ("levy-2014",)
    parsed = True
    RENAMED: ClassVar = {"least": "min_context_count", "shared": "shared_negatives"}
    PRESETS: ClassVar = {"levy-goldberg-2014": {"negatives": 15, "min_context_count": 100, "subsample": 0.0}}
    epochs: int = 5  # passes over the pairs
    min_context_count: int = 2  # rarer contexts are left out
    negatives: int = 10  # negatives per pair
    shared_negatives: int = 512  # drawn per batch and weighted to count as `negatives`
    subsample: float = 1e-4  # t: a pair is kept with probability sqrt(t/f) + t/f of its word
    power: float = 0.75  # exponent of the context counts when negatives are drawn
    batch: int = 512  # pairs per step

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        total = self.epochs * corpus.n_words
        with tempfile.TemporaryDirectory(dir=corpus.folder) as folder:
            reading = read_pairs(corpus, Path(folder), self.min_context_count)
            pairs = yield from relay(reading, lambda n: TrainingProgress(0, total, f"{n:,} parses read"))
            model = DepsModel(self, pairs)
            n_pairs = len(pairs.words)

            def blocks(epoch: int) -> Iterator[Iterable[DepsJob]]:
                return (model.jobs(epoch, first) for first in range(0, n_pairs, _BLOCK))

            loss = yield from train_epochs(self, model, blocks, [n_pairs], corpus.n_words, resources)
            matrix = model.words.table.numpy()
            notes = {"pairs": n_pairs, "contexts": len(pairs.context_counts), **loss_note(loss)}
            return Result(corpus.vectors(matrix, pairs.word_counts > 0), notes)


def iterate_contexts(parse: Parse) -> Iterator[tuple[int, int, str]]:
    """(position of the word, position of its context word, relation) for both ends of every arc."""
    cases: dict[int, list[str]] = {}
    for place, (head, relation) in enumerate(zip(parse.heads, parse.relations, strict=True)):
        if relation.partition(":")[0] == "case" and head >= 0:
            cases.setdefault(head, []).append(fold(parse.forms[place], True))
    objects = {head for head, relation in zip(parse.heads, parse.relations, strict=True) if relation == "pobj"}
    for place, (head, relation) in enumerate(zip(parse.heads, parse.relations, strict=True)):
        if head < 0 or relation.partition(":")[0] == "case" or (relation == "prep" and place in objects):
            continue
        if relation == "pobj" and parse.heads[head] >= 0:
            head, relation = parse.heads[head], f"prep_{fold(parse.forms[head], True)}"
        else:
            relation = "_".join([relation, *cases.get(place, [])])
        yield head, place, relation
        yield place, head, f"{relation}-1"


class DependencyPairs(NamedTuple):
    words: NDArray[np.int64]  # (P,) rows of the vocabulary
    contexts: NDArray[np.int64]  # (P,) rows of the contexts
    word_counts: NDArray[np.int64]  # (V,) pairs of each word
    context_counts: NDArray[np.int64]  # (C,)


def read_pairs(corpus: EncodedCorpus, folder: Path, min_count: int) -> Generator[int, None, DependencyPairs]:
    """The pairs of known words whose context is frequent enough; yields the number of parses read."""
    n_words = len(corpus.vocabulary)
    relations: dict[str, int] = {}  # numbered in order of appearance
    path = folder / "pairs"
    n_parses = 0
    with open(path, "wb") as stream:
        buffer: list[int] = []
        for n_parses, parse in enumerate(corpus.parses(), 1):
            rows = corpus.rows_of(parse)
            for word, other, relation in iterate_contexts(parse):
                if rows[word] >= 0 and rows[other] >= 0:
                    number = relations.setdefault(relation, len(relations))
                    buffer += (rows[word], rows[other] + n_words * number)
            if n_parses % _PARSES == 0:
                stream.write(np.array(buffer, np.int64).tobytes())
                buffer = []
                yield n_parses
        stream.write(np.array(buffer, np.int64).tobytes())
    if not path.stat().st_size:
        raise no_dependencies_error(n_parses)
    pairs = np.memmap(path, np.int64, "r").reshape(-1, 2)
    keys, place, counts = np.unique(pairs[:, 1], return_inverse=True, return_counts=True)
    frequent = counts >= min_count
    if not frequent.any():
        raise CorpusError(
            f"No context occurs {min_count:,} times; the most frequent of {len(keys):,} occurs {counts.max():,} times. "
            f"Give more parses or a lower min_context_count (deps:min_context_count={counts.max()}).",
            code="no-contexts",
        )
    contexts = np.where(frequent, np.cumsum(frequent) - 1, -1)[place]
    chosen = contexts >= 0
    words = np.array(pairs[:, 0])[chosen]
    return DependencyPairs(words, contexts[chosen], np.bincount(words, minlength=n_words), counts[frequent])


def no_dependencies_error(n_parses: int) -> CorpusError:
    message = f"No two known words depend on each other in {n_parses:,} parses; give more text or a lower --min-count."
    return CorpusError(message, code="no-dependencies")


class DepsJob(NamedTuple):
    words: NDArray[np.int64]  # (P,)
    contexts: NDArray[np.int64]  # (P,)
    lr: float
    seed: tuple[int, ...]


class DepsModel:
    """A table of words and one of contexts."""

    def __init__(self, settings: Deps, pairs: DependencyPairs) -> None:
        self.settings = settings
        self.pairs = pairs
        self.schedule = Schedule(settings.epochs, settings.rate)
        self.sampler = NegativeSampler(pairs.context_counts, settings.power)
        self.keep = keep_probability(pairs.word_counts, settings.subsample).numpy()
        self.words = RowAdaGrad(random_rows(len(pairs.word_counts), settings.dim, settings.seed))
        self.contexts = RowAdaGrad(torch.zeros(len(pairs.context_counts), settings.dim))

    def tensors(self) -> dict[str, Tensor]:
        tables = {"words": self.words, "contexts": self.contexts}
        return {f"{name}.{part}": tensor for name, table in tables.items() for part, tensor in table.tensors().items()}

    def jobs(self, epoch: int, first: int) -> Iterator[DepsJob]:
        """A block of pairs in random order, a batch at a time."""
        n_pairs, seed = len(self.pairs.words), (self.settings.seed, epoch, first)
        lr = self.schedule.lr_at((epoch + first / n_pairs) / self.settings.epochs)
        order = first + np.random.default_rng(seed).permutation(min(_BLOCK, n_pairs - first))
        for begin in range(0, len(order), self.settings.batch):
            chosen = order[begin : begin + self.settings.batch]
            yield DepsJob(self.pairs.words[chosen], self.pairs.contexts[chosen], lr, (*seed, begin))

    def train_job(self, job: DepsJob) -> JobResult:
        """One step on a batch."""
        generator = np.random.default_rng(job.seed)
        chosen = generator.random(len(job.words)) < self.keep[job.words]
        if not chosen.any():
            return JobResult(0, 0.0, len(job.words))
        words, contexts = torch.from_numpy(job.words[chosen]), torch.from_numpy(job.contexts[chosen])
        negatives = self.sampler.draw((self.settings.shared_negatives,), generator)
        loss, rows, by_rows, context_rows, by_contexts = self.gradients(words, contexts, negatives)
        self.words.update(rows, by_rows, job.lr)
        self.contexts.update(context_rows, by_contexts, job.lr)
        return JobResult(len(words), float(loss), len(job.words))

    def gradients(self, words: Tensor, contexts: Tensor, negatives: Tensor) -> tuple[Tensor, ...]:
        """The loss; the rows of words it depends on and its gradient by them; the same for contexts."""
        vectors = self.words.table.index_select(0, words)
        loss, by_vectors, context_rows, by_contexts = negative_sampling_loss(
            vectors, self.contexts.table, contexts, negatives, self.settings.negatives
        )
        return loss, *sum_by_row(words, by_vectors), context_rows, by_contexts
