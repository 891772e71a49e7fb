"""GloVe (Pennington et al. 2014): products of vectors are the logarithms of how often words stand together.

    J = sum over pairs (i, j) of f(X_ij) (w_i . c_j + b_i + b'_j - log X_ij)²,   f(x) = min(1, (x / x_max)^alpha)

X counts pairs within the window, 1/distance each, in both orders. AdaGrad pair by pair, as the authors' program has it:
half the gradient times the rate, over the root of one plus the squares of those before. Pairs are dealt at random into
shares; in a share the words come in a random order, each with its pairs. Of several threads each has words and contexts
of its own at a time (Gemulla et al. 2011), contexts that lie together, so that none waits for a row that another writes
or for its neighbour: the same number of threads gives the same bytes.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from stillvec.baselines.baseline import Resources, TrainingStep, check_settings, diverged
from stillvec.baselines.cooccurrence import SortedRun, count_pairs, dealt
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.registry import require
from stillvec.result import Result

_SHARE = 1 << 22  # pairs, about
_LINE = 16  # numbers that memory moves at once
_STILL = 1e30  # squares of what no step moves

Stretch = tuple[int, int]  # from, to before


@dataclass(frozen=True)
class Glove:
    resumes: ClassVar[bool] = True
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "pennington-2014": {"epochs": 100, "x_max": 100.0, "add_contexts": True},
    }
    settings: str = "stillvec"
    dim: int = 300
    epochs: int = 20
    window: int = 10
    x_max: float = 10.0  # the paper's 100 is for a thousand times as much text
    alpha: float = 0.75
    rate: float = 0.05
    add_contexts: bool = False  # a word's vector as a context added to its own, as in the paper
    seed: int = 0

    def __post_init__(self) -> None:
        above = {"dim": self.dim, "epochs": self.epochs, "window": self.window, "x_max": self.x_max, "rate": self.rate}
        check_settings(self, above, {"alpha": self.alpha, "seed": self.seed})

    def steps(self, text: EncodedCorpus, means: Resources) -> Generator[TrainingStep, None, Result]:
        total = self.epochs * text.words
        model = Factors(self, len(text.vocabulary))
        with tempfile.TemporaryDirectory(dir=text.folder) as name:
            counting = count_pairs(text, self.window, Path(name))
            runs: list[SortedRun] = []
            while True:
                try:
                    passed = next(counting)
                except StopIteration as end:
                    runs = end.value
                    break
                yield TrainingStep(0, total, f"{passed:,} words counted")
            shares = dealt(runs, -(-sum(len(run.counts) for run in runs) // _SHARE), Path(name), self.seed)
            loss = yield from self._train(model, shares, text.words, means)
            pairs = sum(len(share.counts) for share in shares)
        notes = {"loss": loss} if math.isfinite(loss) else {}
        return Result(text.learnt(model.result()), {**notes, "pairs": pairs})

    def _train(
        self, model: Factors, shares: list[SortedRun], words: int, means: Resources
    ) -> Generator[TrainingStep, None, float]:
        total = self.epochs * words
        begun = means.checkpoint.restore(model) if means.checkpoint is not None else 0
        pairs = sum(len(share.counts) for share in shares)
        loss = math.nan
        with ThreadPoolExecutor(means.threads) as pool:
            apply = pool.map if means.threads > 1 else map
            for epoch in range(begun, self.epochs):
                choose = np.random.default_rng([self.seed, epoch])
                sums = seen = 0.0
                for number in choose.permutation(len(shares)).tolist():
                    share = shares[number].held()
                    order = choose.permutation(len(share.starts) - 1)
                    for words_of, contexts_of in turns(share, order, means.threads):
                        sums += sum(apply(partial(model.learn, share), words_of, contexts_of))
                    seen += len(share.counts)
                    yield TrainingStep(int(words * (epoch + seen / pairs)), total, f"loss {sums / seen:.4f}")
                if not math.isfinite(sums) or not model.finite():
                    raise diverged(self.rate)
                loss = sums / seen
                if means.checkpoint is not None:
                    means.checkpoint.write(model, epoch + 1)
        return loss


class Factors:
    """The tables of words and contexts, (2, W) a word: numbers, and the sums of squares of their steps.

    After its vector a word has its bias and a one, a context a one and its bias, so that a product of rows has both.
    """

    def __init__(self, settings: Glove, size: int) -> None:
        require("numba", "train", "GloVe")
        from stillvec.baselines import glove_kernel

        self._kernel = glove_kernel
        self.settings = settings
        dim = settings.dim
        choose = np.random.default_rng(settings.seed)
        self.words, self.contexts = (_lined(size, dim + 2) for _ in range(2))  # (V, 2, W)
        for table, bias, one in ((self.words, dim, dim + 1), (self.contexts, dim + 1, dim)):
            drawn = (choose.random((size, dim + 1), np.float32) - np.float32(0.5)) / np.float32(dim)
            table[:, 0, :dim], table[:, 0, bias], table[:, 0, one] = drawn[:, :dim], drawn[:, dim], 1
            table[:, 1], table[:, 1, one] = 1, _STILL

    def tensors(self) -> dict[str, torch.Tensor]:
        return {"words": torch.from_numpy(self.words), "contexts": torch.from_numpy(self.contexts)}

    def finite(self) -> bool:
        return bool(np.isfinite(self.words).all() and np.isfinite(self.contexts).all())

    def result(self) -> NDArray[np.float32]:
        vectors = self.words[:, 0] + self.contexts[:, 0] if self.settings.add_contexts else self.words[:, 0]
        return np.ascontiguousarray(vectors[:, : self.settings.dim])

    def learn(self, share: SortedRun, order: NDArray[np.int64], contexts: Stretch) -> float:
        """Steps on the pairs of some words of a share with some contexts; gives their loss, each before its step."""
        asked, pairs = self.settings, (share.starts, share.columns, share.counts)
        given = (order, *contexts, *pairs, asked.x_max, asked.alpha, asked.rate)
        return self._kernel.learn(self.words, self.contexts, *given)


def _lined(rows: int, wide: int) -> NDArray[np.float32]:
    """Zeros (rows, 2, wide or a little more), each row from the start of a line: no two have one in common."""
    wide = -(-wide // _LINE) * _LINE
    raw = np.zeros(rows * 2 * wide + _LINE, np.float32)
    start = -raw.ctypes.data % (_LINE * raw.itemsize) // raw.itemsize
    return raw[start : start + rows * 2 * wide].reshape(rows, 2, wide)


def turns(
    share: SortedRun, order: NDArray[np.int64], threads: int
) -> Iterator[tuple[list[NDArray[np.int64]], list[Stretch]]]:
    """Words and contexts of each thread by turns: a few frequent contexts, or many rare ones with as many pairs."""
    words = [order[first:last] for first, last in cut(np.diff(share.starts)[order], threads)]
    contexts = cut(np.bincount(share.columns, minlength=len(order)), threads)
    for turn in range(threads):
        yield words, contexts[turn:] + contexts[:turn]


def cut(held: NDArray[np.int64], pieces: int) -> list[Stretch]:
    """Stretches of about the same sum each."""
    passed = np.cumsum(held)
    edges = np.searchsorted(passed, np.linspace(0, passed[-1], pieces + 1)[1:-1])
    return [*pairwise([0, *edges.tolist(), len(held)])]
