"""SynGCN (Vashishth et al. 2019): a graph convolution over the dependency tree predicts each word from its neighbours.

    h_i = sum over neighbours j of g_ij (W_l x_j + b_l),   g_ij = sigmoid(a_l . x_j + c_l),   l the relation
    sum over words i:   l(h_i . u_i) + sum over negatives w' of l(-h_i . u_w')

A relation and its inverse have their own weights; a word is not its own neighbour. There is one layer without ReLU: the
authors' program has one between layers only, the paper's formula after each. The result is u, which must fit all the
neighbourhoods of a word, while x is seen only through the weights of a relation and stayed at chance on a million
words.
AdaGrad on batches of sentences that share their negatives. Threads share the tables without locks, so only a single
thread gives the same bytes twice.
"""

import math
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.baselines.baseline import JobResult, Resources, SampledBaseline, loss_note, train_epochs
from stillvec.baselines.deps import no_dependencies_error
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.errors import CorpusError
from stillvec.progress import relay
from stillvec.result import Result
from stillvec.training.negative_sampling import NegativeSampler, keep_probability, negative_sampling_loss
from stillvec.training.optimizers import RowAdaGrad, random_rows
from stillvec.training.schedule import Schedule, TrainingProgress
from stillvec.vocabulary.token_cache import concatenate_ranges

_PARSES = 10_000  # between progress events
_SENTENCES = 8192  # whose batches are prepared for the threads at once
_INITIAL_SQUARES = 1e-2  # of AdaGrad: u starts at zero, so the first steps are uninformed and must be small


@dataclass(frozen=True)
class SynGcn(SampledBaseline):
    SUMMARY = "trained by a graph convolution over parses (no teacher)"
    PAPERS = ("vashishth-2019",)
    parsed = True
    RENAMED: ClassVar = {"labels": "n_relations", "shared": "shared_negatives"}
    settings: str = "stillvec"  # no other settings are known
    epochs: int = 3  # passes over the parses
    n_relations: int = 40  # relations with their own weights; all rarer ones share the last
    shared_negatives: int = 512  # drawn per batch and weighted to count as `negatives`
    batch: int = 64  # sentences per step
    rate: float = 0.1  # initial learning rate, a tenth of it for the weights; falls to a hundredth

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        total = self.epochs * corpus.n_words
        reading = read_trees(corpus, self.n_relations)
        trees = yield from relay(reading, lambda n: TrainingProgress(0, total, f"{n:,} parses read"))
        connected = _find_connected(trees, len(corpus.vocabulary))
        if not connected.any():
            raise no_dependencies_error(len(trees.ends))
        model = SynGcnModel(self, corpus.vocabulary.counts, trees)
        loss = yield from train_epochs(self, model, model.blocks, [len(trees.ends)], corpus.n_words, resources)
        matrix = model.tables["targets"].table.numpy()
        return Result(corpus.vectors(matrix, connected), loss_note(loss))


class Trees(NamedTuple):
    words: NDArray[np.int64]  # (W,) rows of the vocabulary, -1 for an unknown word
    heads: NDArray[np.int64]  # (W,) positions in the sentence, -1 for a root
    relations: NDArray[np.int64]  # (W,) to the head, numbers below `n_relations`
    ends: NDArray[np.int64]  # (S,) of the sentences
    n_relations: int


def read_trees(corpus: EncodedCorpus, n_relations: int) -> Generator[int, None, Trees]:
    """All trees, 24 bytes per word; the rarest relations are merged into one; yields the number of parses read."""
    columns: tuple[list[NDArray[np.int64]], ...] = ([], [], [])
    ends: list[int] = []
    numbers: dict[str, int] = {}
    counts: Counter[int] = Counter()
    for n_parses, parse in enumerate(corpus.parses(), 1):
        rows = corpus.rows_of(parse)
        labels = [numbers.setdefault(relation, len(numbers)) for relation in parse.relations]
        counts.update(labels)
        for column, values in zip(columns, (rows, parse.heads, labels), strict=True):
            column.append(np.array(values, np.int64))
        ends.append((ends[-1] if ends else 0) + len(rows))
        if n_parses % _PARSES == 0:
            yield n_parses
    if not ends:
        raise CorpusError("The corpus has no parses; give CoNLL-U files with sentences.", code="no-parses")
    rank = {number: place for place, (number, _) in enumerate(counts.most_common())}
    merged = np.array([min(rank[number], n_relations - 1) for number in range(len(numbers))], np.int64)
    words, heads, relations = map(np.concatenate, columns)
    return Trees(words, heads, merged[relations], np.array(ends), min(n_relations, len(numbers)))


def _find_connected(trees: Trees, n_words: int) -> NDArray[np.bool_]:
    """The words with a known neighbour in some tree (V,)."""
    connected = np.zeros(n_words, bool)
    starts = np.repeat(np.concatenate([[0], trees.ends[:-1]]), np.diff(trees.ends, prepend=0))
    head = trees.words[np.maximum(starts + trees.heads, 0)]
    both = (trees.heads >= 0) & (trees.words >= 0) & (head >= 0)
    connected[trees.words[both]] = connected[head[both]] = True
    return connected


class SynGcnGraph(NamedTuple):
    """A batch of sentences: words, arcs in both directions sorted by label, and targets."""

    cuts: list[int]  # (2 L + 1,) where the arcs of each label begin
    words: Tensor  # (N,)
    sources: Tensor  # (E,) positions
    ends: Tensor  # (E,) positions
    targets: Tensor  # (T,) positions


class SynGcnJob(NamedTuple):
    graph: SynGcnGraph
    negatives: Tensor  # (K,)
    lr: float
    n_sentences: int


class SynGcnModel:
    """Tables of words, of targets and, one row per label, of weights."""

    def __init__(self, settings: SynGcn, counts: NDArray[np.int64], trees: Trees) -> None:
        dim, n_labels = settings.dim, 2 * trees.n_relations
        self.settings = settings
        self.trees = trees
        self._starts, self._lengths = np.concatenate([[0], trees.ends[:-1]]), np.diff(trees.ends, prepend=0)
        self.schedule = Schedule(settings.epochs, settings.rate)
        self.sampler = NegativeSampler(counts, settings.power)
        self.keep = keep_probability(counts, settings.subsample).numpy()
        tables = {
            "words": random_rows(len(counts), dim, settings.seed) * math.sqrt(dim),
            "targets": torch.zeros(len(counts), dim),
            "mixing": torch.eye(dim).flatten().repeat(n_labels, 1),  # W, which leaves a neighbour as it is at first
            "offsets": torch.zeros(n_labels, dim),  # b
            "gates": torch.zeros(n_labels, dim + 1),  # a and c
        }
        self.tables = {name: RowAdaGrad(table, _INITIAL_SQUARES) for name, table in tables.items()}

    def tensors(self) -> dict[str, Tensor]:
        tables = self.tables.items()
        return {f"{name}.{part}": tensor for name, table in tables for part, tensor in table.tensors().items()}

    def graph(self, sentences: NDArray[np.int64], generator: np.random.Generator) -> SynGcnGraph:
        trees, lengths = self.trees, self._lengths[sentences]
        places = concatenate_ranges(self._starts[sentences], lengths)
        words, heads, relations = trees.words[places], trees.heads[places], trees.relations[places]
        begin = np.repeat(np.cumsum(lengths) - lengths, lengths)
        head = np.where(heads >= 0, begin + heads, 0)
        modifier = np.flatnonzero((heads >= 0) & (words >= 0) & (words[head] >= 0))
        head = head[modifier]
        sources, ends = np.concatenate([modifier, head]), np.concatenate([head, modifier])
        label = np.concatenate([relations[modifier], relations[modifier] + trees.n_relations])
        order = np.argsort(label, kind="stable")
        cuts = np.searchsorted(label[order], np.arange(2 * trees.n_relations + 1)).tolist()
        targets = np.unique(ends)
        targets = targets[generator.random(len(targets)) < self.keep[words[targets]]]
        arrays = (np.maximum(words, 0), sources[order], ends[order], targets)
        return SynGcnGraph(cuts, *map(torch.from_numpy, arrays))

    def blocks(self, epoch: int) -> Iterator[Iterable[SynGcnJob]]:
        """The jobs of an epoch, some thousand sentences at a time in random order."""
        generator = np.random.default_rng((self.settings.seed, epoch))
        order = generator.permutation(len(self.trees.ends))
        for first in range(0, len(order), _SENTENCES):
            yield self._jobs(order[first : first + _SENTENCES], epoch * len(order) + first, generator)

    def _jobs(self, sentences: NDArray[np.int64], n_before: int, generator: np.random.Generator) -> Iterator[SynGcnJob]:
        size, total = self.settings.batch, self.settings.epochs * len(self.trees.ends)
        for first in range(0, len(sentences), size):
            chosen = sentences[first : first + size]
            graph = self.graph(chosen, generator)
            lr = self.schedule.lr_at((n_before + first + len(chosen)) / total)
            negatives = self.sampler.draw((self.settings.shared_negatives,), generator)
            yield SynGcnJob(graph, negatives, lr, len(chosen))

    def train_job(self, job: SynGcnJob) -> JobResult:
        n_targets = len(job.graph.targets)
        return JobResult(n_targets, self.step(job.graph, job.negatives, job.lr) if n_targets else 0.0, job.n_sentences)

    def step(self, graph: SynGcnGraph, negatives: Tensor, lr: float) -> float:
        """One step on a batch; returns its loss."""
        words, place = torch.unique(graph.words, return_inverse=True)
        labels = torch.tensor([label for label, (a, b) in enumerate(pairwise(graph.cuts)) if b > a])
        chosen = {"words": words, "mixing": labels, "offsets": labels, "gates": labels}
        leaves = {name: self.tables[name].table[rows].requires_grad_() for name, rows in chosen.items()}
        hidden = convolve(leaves, place, graph)[graph.targets]  # (T, D)
        targets, table = graph.words[graph.targets], self.tables["targets"].table
        loss, by_hidden, rows, by_rows = negative_sampling_loss(
            hidden.detach(), table, targets, negatives, self.settings.negatives
        )
        hidden.backward(by_hidden)  # type: ignore[no-untyped-call]
        self.tables["targets"].update(rows, by_rows, lr)
        for name, touched in chosen.items():
            gradient = leaves[name].grad
            if gradient is not None:
                self.tables[name].update(touched, gradient, lr if name == "words" else lr / 10)
        return float(loss)


def convolve(leaves: Mapping[str, Tensor], place: Tensor, graph: SynGcnGraph) -> Tensor:
    """h of every word (N, D); `leaves` are the vectors of the distinct words and the weights of the labels present."""
    vectors = leaves["words"][place]  # (N, D)
    dim = vectors.shape[1]
    sizes = [last - first for first, last in pairwise(graph.cuts) if last > first]
    near = vectors[graph.sources].split(sizes)  # type: ignore[no-untyped-call]
    weights = (leaves[name].unbind() for name in ("gates", "mixing", "offsets"))  # once, not per label: faster backward
    messages: list[Tensor] = []
    for rows, gate, mixing, offset in zip(near, *weights, strict=True):  # (E_l, D)
        share = torch.sigmoid(rows @ gate[:dim] + gate[dim])[:, None]
        messages.append(share * (rows @ mixing.view(dim, dim).T + offset))
    return torch.zeros_like(vectors).index_add(0, graph.ends, torch.cat(messages))
