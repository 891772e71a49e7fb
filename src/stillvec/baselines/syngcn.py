"""SynGCN (Vashishth et al. 2019): a graph convolution over the dependency tree tells each word from its neighbours.

    h_i = sum over neighbours j of g_ij (W_l x_j + b_l),   g_ij = sigmoid(a_l . x_j + c_l),   l the relation
    sum over words i:   l(h_i . u_i) + sum over negatives w' of l(-h_i . u_w')

A relation and its inverse have their own weights; a word is no neighbour of itself. There is one layer, and no ReLU
after it: the authors' program has one between layers only, the paper's formula after each. u, which a word is told by,
is the result: it must fit all that stands around the word, while x is only seen through the weights of a relation, and
stayed at chance on a million words. AdaGrad on some sentences at once that share their negatives. Several threads share
the tables without locks, so only one gives the same bytes twice.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.baselines.baseline import Resources, TrainingStep, check_settings, diverged
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.baselines.negatives import (
    AdaGradTable,
    SharedNegativeSampler,
    keep_probability,
    negative_sampling_loss,
    random_rows,
)
from stillvec.baselines.trees import Trees, read_trees
from stillvec.errors import CorpusError
from stillvec.result import Result
from stillvec.teachers.threads import torch_threads
from stillvec.vocabulary.token_cache import ranges

_SENTENCES = 8192  # whose batches are made ready for threads
_BEGIN = 1e-2  # of AdaGrad's squares: u begins at zero, and the first steps, which know nothing yet, are small


@dataclass(frozen=True)
class SynGcn:
    resumes: ClassVar[bool] = True
    parsed: ClassVar[bool] = True  # it needs parses
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {}
    settings: str = "stillvec"
    dim: int = 300
    epochs: int = 3
    labels: int = 40  # relations with weights of their own; all rarer ones share the last
    negatives: int = 10  # a word
    shared: int = 512  # drawn for a batch
    subsample: float = 1e-4  # t: a target is kept with probability sqrt(t/f) + t/f
    power: float = 0.75  # of the counts, for negatives
    batch: int = 64  # sentences
    rate: float = 0.1  # falls to a hundredth; of the weights a tenth of it
    seed: int = 0

    def __post_init__(self) -> None:
        above: dict[str, float] = {"dim": self.dim, "epochs": self.epochs, "labels": self.labels, "batch": self.batch}
        above |= {"negatives": self.negatives, "shared": self.shared, "rate": self.rate}
        check_settings(self, above, {"subsample": self.subsample, "seed": self.seed})

    def steps(self, text: EncodedCorpus, means: Resources) -> Generator[TrainingStep, None, Result]:
        total = self.epochs * text.words
        reading = read_trees(text, self.labels)
        while True:
            try:
                read = next(reading)
            except StopIteration as end:
                trees: Trees = end.value
                break
            yield TrainingStep(0, total, f"{read:,} parses read")
        met = _joined(trees, len(text.vocabulary))
        if not met.any():
            raise CorpusError(
                "No two known words depend on each other in the parses; give more, or a lower --min-count."
            )
        model = SynGcnModel(self, text.vocabulary.counts, trees.labels)
        loss = yield from self._train(model, trees, text.words, means)
        vectors = model.tables["targets"].rows.numpy()
        if not np.isfinite(vectors).all():
            raise diverged(self.rate)
        return Result(text.learnt(vectors, met), {"loss": loss} if math.isfinite(loss) else {})

    def _train(
        self, model: SynGcnModel, trees: Trees, words: int, means: Resources
    ) -> Generator[TrainingStep, None, float]:
        begun = means.checkpoint.restore(model) if means.checkpoint is not None else 0
        starts, lengths = np.concatenate([[0], trees.ends[:-1]]), np.diff(trees.ends, prepend=0)
        loss = math.nan
        with torch_threads(1), ThreadPoolExecutor(means.threads) as pool:
            apply = pool.map if means.threads > 1 else map
            for epoch in range(begun, self.epochs):
                sums = targets = read = 0.0
                choose = np.random.default_rng((self.seed, epoch))
                order = choose.permutation(len(trees.ends))
                for first in range(0, len(order), _SENTENCES):
                    some = order[first : first + _SENTENCES]
                    left = range(epoch * len(order) + first, self.epochs * len(order))
                    jobs = model.jobs(trees, starts[some], lengths[some], left, choose)
                    for told, its_loss, size in apply(model.learn, jobs):
                        sums, targets, read = sums + its_loss, targets + told, read + size
                        if not math.isfinite(sums):
                            raise diverged(self.rate)
                        done = int(words * (epoch + read / len(order)))
                        yield TrainingStep(done, self.epochs * words, f"loss {sums / max(targets, 1):.4f}")
                loss = sums / max(targets, 1)
                if means.checkpoint is not None:
                    means.checkpoint.write(model, epoch + 1)
        return loss


def _joined(trees: Trees, size: int) -> NDArray[np.bool_]:
    """The words with a known neighbour in some tree (V,)."""
    met = np.zeros(size, bool)
    starts = np.repeat(np.concatenate([[0], trees.ends[:-1]]), np.diff(trees.ends, prepend=0))
    head = trees.words[np.maximum(starts + trees.heads, 0)]
    both = (trees.heads >= 0) & (trees.words >= 0) & (head >= 0)
    met[trees.words[both]] = met[head[both]] = True
    return met


class SynGcnGraph(NamedTuple):
    """Some sentences: their words, the arcs in both directions in the order of labels, and the words to tell."""

    words: Tensor  # (N,)
    sources: Tensor  # (E,) places
    ends: Tensor  # (E,) places
    cuts: list[int]  # (2 L + 1,) where each label's arcs begin
    targets: Tensor  # (T,) places


class SynGcnJob(NamedTuple):
    """What a thread does at a time."""

    graph: SynGcnGraph
    drawn: Tensor  # (K,)
    rate: float
    sentences: int


class SynGcnModel:
    """Tables of words, targets and, a row a label, weights."""

    def __init__(self, settings: SynGcn, counts: NDArray[np.int64], labels: int) -> None:
        dim, size = settings.dim, len(counts)
        self.settings = settings
        self.labels = labels
        self.noise = SharedNegativeSampler(counts, settings.power)
        self.kept = keep_probability(counts, settings.subsample)
        begun = {
            "words": random_rows(size, dim, settings.seed) * math.sqrt(dim),
            "targets": torch.zeros(size, dim),
            "mixing": torch.eye(dim).flatten().repeat(2 * labels, 1),  # W: at first, a neighbour counts as it is
            "offsets": torch.zeros(2 * labels, dim),  # b
            "gates": torch.zeros(2 * labels, dim + 1),  # a and c
        }
        self.tables = {name: AdaGradTable(rows, _BEGIN) for name, rows in begun.items()}

    def tensors(self) -> dict[str, Tensor]:
        parts = ("rows", "squares")
        return {f"{name}.{part}": getattr(table, part) for name, table in self.tables.items() for part in parts}

    def graph(
        self, trees: Trees, starts: NDArray[np.int64], lengths: NDArray[np.int64], choose: np.random.Generator
    ) -> SynGcnGraph:
        places = ranges(starts, lengths)
        words, heads, relations = trees.words[places], trees.heads[places], trees.relations[places]
        begin = np.repeat(np.cumsum(lengths) - lengths, lengths)
        head = np.where(heads >= 0, begin + heads, 0)
        here = np.flatnonzero((heads >= 0) & (words >= 0) & (words[head] >= 0))
        sources, ends = np.concatenate([here, head[here]]), np.concatenate([head[here], here])
        label = np.concatenate([relations[here], relations[here] + self.labels])
        order = np.argsort(label, kind="stable")
        cuts = np.searchsorted(label[order], np.arange(2 * self.labels + 1)).tolist()
        told = np.unique(ends)
        told = told[choose.random(len(told)) < self.kept[words[told]]]
        return SynGcnGraph(
            torch.from_numpy(np.maximum(words, 0)),
            torch.from_numpy(sources[order]),
            torch.from_numpy(ends[order]),
            cuts,
            torch.from_numpy(told),
        )

    def jobs(
        self,
        trees: Trees,
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        left: range,
        choose: np.random.Generator,
    ) -> Iterator[SynGcnJob]:
        """Batches of sentences, at a rate that falls; `left` are the sentences still to be read, of all epochs."""
        size = self.settings.batch
        for first in range(0, len(starts), size):
            here = slice(first, first + size)
            graph = self.graph(trees, starts[here], lengths[here], choose)
            done = (left.start + first + len(starts[here])) / left.stop
            drawn = self.noise.draw(self.settings.shared, choose)
            yield SynGcnJob(graph, drawn, self.settings.rate * max(0.01, 1 - done), len(starts[here]))

    def learn(self, job: SynGcnJob) -> tuple[int, float, int]:
        """One batch; gives its targets, their loss, its sentences."""
        told = len(job.graph.targets)
        return told, self.step(job.graph, job.drawn, job.rate) if told else 0.0, job.sentences

    def step(self, graph: SynGcnGraph, drawn: Tensor, rate: float) -> float:
        """One batch; gives its loss."""
        own, place = torch.unique(graph.words, return_inverse=True)
        used = torch.tensor([label for label, (a, b) in enumerate(pairwise(graph.cuts)) if b > a])
        chosen = {"words": own, "mixing": used, "offsets": used, "gates": used}
        leaves = {name: self.tables[name].rows[rows].requires_grad_() for name, rows in chosen.items()}
        hidden = convolve(leaves, place, graph)[graph.targets]  # (T, D)
        told = graph.words[graph.targets]
        loss, by_hidden, rows, by_rows = negative_sampling_loss(
            hidden.detach(), self.tables["targets"].rows, told, drawn, self.settings.negatives
        )
        hidden.backward(by_hidden)  # type: ignore[no-untyped-call]
        self.tables["targets"].update(rows, by_rows, rate)
        for name, touched in chosen.items():
            gradient = leaves[name].grad
            if gradient is not None:
                self.tables[name].update(touched, gradient, rate if name == "words" else rate / 10)
        return float(loss)


def convolve(leaves: Mapping[str, Tensor], place: Tensor, graph: SynGcnGraph) -> Tensor:
    """h of every word (N, D): `leaves` are vectors of the different words and weights of the labels that are there."""
    vectors = leaves["words"][place]  # (N, D)
    dim = vectors.shape[1]
    pieces: list[Tensor] = []
    weights = (leaves[name].unbind() for name in ("gates", "mixing", "offsets"))  # once: a gradient of its own each
    near = vectors[graph.sources].split([last - first for first, last in _runs(graph.cuts)])  # type: ignore[no-untyped-call]
    for some, gate, mixing, offset in zip(near, *weights, strict=True):  # (E_l, D)
        share = torch.sigmoid(some @ gate[:dim] + gate[dim])[:, None]
        pieces.append(share * (some @ mixing.view(dim, dim).T + offset))
    return torch.zeros_like(vectors).index_add(0, graph.ends, torch.cat(pieces))


def _runs(cuts: list[int]) -> Iterator[tuple[int, int]]:
    return ((first, last) for first, last in pairwise(cuts) if last > first)
