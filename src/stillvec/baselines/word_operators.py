"""Word linear operators (Chen & Gimpel 2020): a text is a Gaussian, learnt from texts that mean the same.

A word has a shift B and a scale A, both of `dim / 2` numbers: `z_0 ~ N(0, I), z_i = A_i ⊙ (z_{i-1} + B_i)`
(`numerics/gaussians.py`). The similarity of two texts is the logarithm of their expected likelihood kernel,
`d = log N(0; μ_1 - μ_2, Σ_1 + Σ_2)`, and the loss of a pair

    max(0, margin - d(s_1, s_2) + d(s_1, n_1)) + max(0, margin - d(s_1, s_2) + d(s_2, n_2))
    + prior Σ over the words of s_1, s_2, n_1, n_2 of KL(N(A B, A²) || N(0, I))

n_1 is the text of `negative_batches` batches that is most similar to s_1 and not its own partner. The paper prints the
kernel for its logarithm, and does not say what the prior is applied to; here it is each word's map of N(0, I). Scales
are positive (log A is trained). The corpus has one line per meaning, its texts separated by tabs; an epoch draws one
pair of each line. The vector of a word is B and log A, side by side.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.baselines.baseline import Baseline, JobResult, Resources, loss_note, train_epochs
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.errors import CorpusError, UsageError
from stillvec.result import Result
from stillvec.training.optimizers import RowAdam
from stillvec.training.schedule import Schedule, TrainingProgress
from stillvec.vocabulary import WordMatcher
from stillvec.vocabulary.token_cache import concatenate_ranges

_LONGEST = 64  # words of a text
_LINES = 1024  # matched at once
_CELLS = 1 << 21  # numbers of a block of similarities
_PAPER = {"dim": 100, "batch": 100, "negative_batches": 20, "margin": 1.0, "rate": 1e-3, "scrambled": 0.4}
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class WordOperators(Baseline):
    SUMMARY = "an affine map of a Gaussian, trained on texts that mean the same (no teacher)"
    PAPERS = ("chen-2020",)
    PRESETS: ClassVar = {"chen-gimpel-2020": _PAPER}
    dim: int = 100  # half of them shifts, half logarithms of scales
    epochs: int = 10  # passes over the lines, a pair of each
    rate: float = 3e-3  # initial learning rate; falls to a hundredth
    batch: int = 100  # pairs per step
    negative_batches: int = 4  # among whose texts negatives are chosen
    margin: float = 1.0  # by which a pair is to be more similar than its negatives
    prior: float = 0.01  # weight of the divergence of words from N(0, I)
    scrambled: float = 0.4  # share of the texts whose words are shuffled

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim % 2:
            raise UsageError.expected("an even number", self.dim, where="dim of word_operators")

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        texts = _read_texts(corpus)
        model = OperatorModel(self, texts, len(corpus.vocabulary))
        loss = yield from train_epochs(self, model, model.blocks, [texts.n_groups], corpus.n_words, resources)
        trained = np.zeros(len(corpus.vocabulary), bool)
        trained[texts.rows] = True
        return Result(corpus.vectors(model.words.table.numpy(), trained), loss_note(loss))


@dataclass(frozen=True)
class Texts:
    """The known words of texts, line after line."""

    rows: Rows  # (W,)
    starts: Rows  # (T,) of the texts in `rows`
    lengths: Rows  # (T,)
    groups: Rows  # (G + 1,) where lines begin in the texts, and their end

    @property
    def n_groups(self) -> int:
        return len(self.groups) - 1

    def pad(self, chosen: Rows) -> Rows:
        """The words of some texts (n, longest), -1 after the last."""
        lengths = self.lengths[chosen]
        padded = np.full((len(chosen), int(lengths.max(initial=1))), -1)
        inside = np.arange(padded.shape[1]) < lengths[:, None]
        padded[inside] = self.rows[concatenate_ranges(self.starts[chosen], lengths)]
        return padded


def _read_texts(corpus: EncodedCorpus) -> Texts:
    matcher = WordMatcher(corpus.vocabulary)
    rows: list[Rows] = [np.zeros(0, np.int64)]
    lengths, sizes = [*rows], [*rows]
    lines: list[list[str]] = []

    def add() -> None:
        matched, text = matcher.match_rows([text for line in lines for text in line])
        known = matched >= 0
        text = text[known]
        short = np.arange(len(text)) - np.searchsorted(text, text) < _LONGEST
        found, text = matched[known][short].astype(np.int64), text[short]
        of_text = np.bincount(text, minlength=sum(map(len, lines)))
        line = np.repeat(np.arange(len(lines)), [*map(len, lines)])
        size = np.bincount(line[of_text > 0], minlength=len(lines))  # texts with a known word
        kept = (size >= 2)[line] & (of_text > 0)
        rows.append(found[kept[text]])
        lengths.append(of_text[kept])
        sizes.append(size[size >= 2])
        lines.clear()

    for paragraph in corpus.corpus.paragraphs():
        lines.append(paragraph.split("\t"))
        if len(lines) == _LINES:
            add()
    if lines:
        add()
    all_lengths, all_sizes = np.concatenate(lengths), np.concatenate(sizes)
    if not len(all_sizes):
        what = "lines of two or more texts that mean the same, separated by tabs"
        raise CorpusError.expected(what, "no such line with known words", where="word_operators", code="no-pairs")
    starts = np.cumsum(all_lengths) - all_lengths
    return Texts(np.concatenate(rows), starts, all_lengths, np.append(0, np.cumsum(all_sizes)))


class OperatorJob(NamedTuple):
    groups: Rows
    lr: float
    seed: tuple[int, ...]


class OperatorModel:
    """Shifts and logarithms of scales of all words, (V, 2k)."""

    def __init__(self, settings: WordOperators, texts: Texts, n_words: int) -> None:
        self.settings, self.texts = settings, texts
        self.schedule = Schedule(settings.epochs, settings.rate)
        random = np.random.default_rng(settings.seed)
        table = random.normal(0, 0.1, (n_words, settings.dim)).astype(np.float32)
        table[:, settings.dim // 2 :] *= 0.1  # scales begin near 1
        self.words = RowAdam(torch.from_numpy(table), per_row=True)

    def tensors(self) -> dict[str, Tensor]:
        names = ("table", "mean", "square", "steps")
        return {name: getattr(self.words, name) for name in names}

    def blocks(self, epoch: int) -> Iterator[list[OperatorJob]]:
        seed = (self.settings.seed, epoch)
        order = np.random.default_rng(seed).permutation(self.texts.n_groups)
        size = self.settings.batch * self.settings.negative_batches
        for first in range(0, len(order), size):
            progress = (epoch + first / len(order)) / self.settings.epochs
            yield [OperatorJob(order[first : first + size], self.schedule.lr_at(progress), (*seed, first))]

    def train_job(self, job: OperatorJob) -> JobResult:
        """Draw a pair of each line, choose the negatives, then one step per batch."""
        random = np.random.default_rng(job.seed)
        one, other = self._draw_pairs(job.groups, random)
        if len(job.groups) < 2:
            return JobResult(0, 0.0, len(job.groups))
        both = self.texts.pad(np.concatenate([one, other]))
        scrambled = random.random(len(both)) < self.settings.scrambled
        keys = random.random(both.shape) + (both < 0)  # the padding stays behind
        both[scrambled] = np.take_along_axis(both, np.argsort(keys, axis=1), 1)[scrambled]
        n = len(one)
        negatives = self._choose_negatives(both[:n], both[n:])
        total = 0.0
        for first in range(0, n, self.settings.batch):
            pairs = np.arange(first, min(first + self.settings.batch, n))
            parts = [pairs, n + pairs, n + negatives[0][pairs], negatives[1][pairs]]  # s1, s2, n1, n2
            total += self._step(both[np.concatenate(parts)], job.lr) * len(pairs)
        return JobResult(n, total, n)

    def _draw_pairs(self, groups: Rows, random: np.random.Generator) -> tuple[Rows, Rows]:
        """Two different texts of each line."""
        begin, size = self.texts.groups[groups], np.diff(self.texts.groups)[groups]
        first = random.integers(0, size)
        second = (first + random.integers(1, size)) % size
        return begin + first, begin + second

    @torch.no_grad()
    def _choose_negatives(self, one: Rows, other: Rows) -> tuple[Rows, Rows]:
        """For each text of one side the most similar text of the other side, without its own partner."""
        a, b = (compose(self.words.table, torch.from_numpy(side)) for side in (one, other))
        step = max(1, _CELLS // (len(other) * self.settings.dim))
        blocks = [
            similarities(a[0][at : at + step, None], a[1][at : at + step, None], b[0][None], b[1][None])
            for at in range(0, len(one), step)
        ]
        scores = torch.cat(blocks).fill_diagonal_(-torch.inf)  # (n, n)
        return scores.argmax(1).numpy(), scores.argmax(0).numpy()

    def _step(self, texts: Rows, lr: float) -> float:
        rows, place = np.unique(texts, return_inverse=True)
        padded = rows[0] < 0
        rows, place = rows[int(padded) :], place.reshape(texts.shape) - int(padded)
        words = self.words.table[torch.from_numpy(rows)].requires_grad_()  # (R, 2k)
        loss = self.loss(words, torch.from_numpy(place))
        (gradient,) = torch.autograd.grad(loss, words)
        self.words.update(torch.from_numpy(rows), gradient, lr)
        return float(loss.detach())

    def loss(self, words: Tensor, texts: Tensor) -> Tensor:
        """The mean loss of pairs and their negatives, stacked (4n, longest), -1 after the last word."""
        mean, log_variance = compose(words, texts)
        means, variances = mean.chunk(4), log_variance.chunk(4)
        pair, first, second = (
            similarities(means[a], variances[a], means[b], variances[b]) for a, b in ((0, 1), (0, 2), (1, 3))
        )
        margin = self.settings.margin
        hinge = torch.relu(margin - pair + first) + torch.relu(margin - pair + second)
        shifts, scales = words.chunk(2, 1)
        squares = torch.exp(2 * scales)
        divergence = 0.5 * (squares * (1 + shifts**2) - 1 - 2 * scales).sum(1)  # (R,)
        counts = torch.bincount(texts[texts >= 0], minlength=len(words))
        return (hinge.sum() + self.settings.prior * (counts * divergence).sum()) / len(hinge)


def compose(table: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
    """Means and logarithms of variances (n, k) of texts (n, longest), -1 after the last word."""
    inside = (texts >= 0)[..., None]
    shifts, scales = torch.where(inside, table[texts.clamp(min=0)], 0.0).chunk(2, 2)  # (n, T, k)
    sums = scales.cumsum(1)
    mean = (shifts * torch.exp(sums[:, -1:] - sums + scales)).sum(1)
    return mean, 2 * sums[:, -1]


def similarities(mean_a: Tensor, log_a: Tensor, mean_b: Tensor, log_b: Tensor) -> Tensor:
    """The logarithm of the expected likelihood kernel, without its constant."""
    variance = torch.exp(log_a) + torch.exp(log_b)
    return -0.5 * (torch.log(variance) + (mean_a - mean_b) ** 2 / variance).sum(-1)
