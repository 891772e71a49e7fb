"""X2Static targets per second, compared with a plain PyTorch loop in the style of the published code.

    python benchmarks/train.py [--sentences N] [--words N] [--dim N] [--device cpu|cuda] [--store DIR] [--threads N]

The contexts are random (words by Zipf's law, one in fifty unknown) and written to a context cache, or read from a real
one (`--store`, a folder with a store.json). Ours is the whole epoch as `distill` trains it, including reading; the
closed-form start is timed separately. The published style: batches of 128 sentences, `nn.Embedding(sparse=True)`, one
lookup per negative, autograd, `SparseAdam`; contexts, words and subsampling are precomputed on its device, so its time
includes no reading. It runs for `--seconds`, not for the whole epoch.

A target is an occurrence of a word that remains after subsampling, with its ten negatives. The runs with shared
negatives keep more of a text than the paper's settings, so the published-style loop runs with both values, and each of
ours is compared with the one that has the same subsampling. Words per second count all known words of an epoch. For
methods with windows, a centre is a word with a known word around it. The runs alternate, `--times` each, and the best
one counts.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import ratios
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from stillvec.encoding.context_store import Contexts, ContextWriter
from stillvec.learners import LEARNERS
from stillvec.learners.context_blocks import ContextBlock, ContextBlocks
from stillvec.learners.stored_contexts import context_arrays
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.training_loop import BatchResult, train
from stillvec.learners.x2static import X2Static
from stillvec.registry import settings_from
from stillvec.statistics import Statistics
from stillvec.training.negative_sampling import NegativeSampler, keep_probability
from stillvec.vocabulary import Vocabulary

SHARED = {  # negatives that all sentences of a large batch share, from the closed form
    "epochs": 1,
    "batch": 1024,
    "shared_negatives": 1024,
    "whiten": True,
    "bias": True,
    "start": "closed",
}
WINDOWS = {**SHARED, "batch": 256, "projection_rate": 0.0, "include_center": True, "optimizer": "adam", "rate": 1e-3}
RUNS: dict[str, tuple[str, dict[str, object]]] = {
    "x2static, shared negatives": ("x2static", {**SHARED, "subsample": 1e-4}),
    "x2static, gupta-jaggi-2021": ("x2static", {"settings": "gupta-jaggi-2021"}),
    "attentive_skipgram, shared negatives": ("attentive_skipgram", {**WINDOWS, "window": 2}),
    "attentive_skipgram, wang-2020": ("attentive_skipgram", {"settings": "wang-2020"}),
    "context_to_vec, shared negatives": ("context_to_vec", WINDOWS),
    "context_to_vec, zheng-2022": ("context_to_vec", {"settings": "zheng-2022"}),
}


_CLOCK = [time.perf_counter]


class Timing(NamedTuple):
    """The result of a run."""

    targets: int
    words: int
    seconds: float
    start: float = 0.0  # seconds before the first batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=50_000)
    parser.add_argument("--length", type=int, default=20, help="mean number of words per sentence")
    parser.add_argument("--words", type=int, default=50_000, help="size of the vocabulary")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, help="torch threads, on a CPU")
    parser.add_argument("--store", type=Path, help="a real context cache instead of random contexts")
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of the published-style loop")
    parser.add_argument("--times", type=int, default=3, help="number of runs")
    parser.add_argument("--only", default="", help="only runs whose name contains this")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time, which busy cores can be compared by")
    options = parser.parse_args()
    if options.cpu_time:
        _CLOCK[0] = time.process_time
    if options.threads:
        torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__} on {device.type} ({name})")
    with tempfile.TemporaryDirectory() as folder:
        _compare(options, device, Path(folder))


def _compare(options: argparse.Namespace, device: torch.device, folder: Path) -> None:
    plain, few = _stores(options, folder)
    known = int((plain["stored:words"] >= 0).sum())
    print(
        f"{len(plain['stored:lengths']):,} sentences, {known:,} known words of {len(plain.vocabulary):,}, "
        f"{plain['stored:contexts'].shape[1]} dimensions; with windows {len(few['stored:lengths']):,} sentences"
    )
    chosen = {name: settings_from(LEARNERS[method], given) for name, (method, given) in RUNS.items()}
    timings: dict[str, list[Timing]] = {}
    for _ in range(options.times):
        for name, learner in chosen.items():
            if options.only not in name:
                continue
            if isinstance(learner, X2Static):
                run = _published(plain, learner.subsample, device, options.seconds)
                timings.setdefault(_reference(learner), []).append(run)
            kept = plain if isinstance(learner, X2Static) else few
            timings.setdefault(name, []).append(_epoch(learner, kept, device))
    speeds = {name: max(run.targets / run.seconds for run in runs) for name, runs in timings.items()}
    for name, runs in timings.items():
        best = max(runs, key=lambda run: run.targets / run.seconds)
        learner = chosen.get(name)
        ratio = f"{speeds[name] / speeds[_reference(learner)]:8.1f} times" if isinstance(learner, X2Static) else ""
        unit = "targets" if learner is None or ratio else "centres"
        if isinstance(learner, X2Static):
            other = speeds[_reference(learner)]
            ratios.record(
                f"training {name}", speeds[name] / other, f"{speeds[name]:,.0f} targets/s", f"loop {other:,.0f}"
            )
        print(
            f"  {name:40s} {speeds[name]:12,.0f} {unit}/s {best.words / best.seconds:12,.0f} words/s "
            f"{best.start:8.2f} s to start {ratio}"
        )


def _reference(learner: X2Static) -> str:
    """The name of the loop that it is compared with."""
    return f"published style of loop, t = {learner.subsample:g}"


def _epoch(learner: TrainedLearner, kept: Statistics, device: torch.device) -> Timing:
    """Train one epoch as the learner does."""
    begun = _CLOCK[0]()
    width = kept["stored:contexts"].shape[1]
    blocks = ContextBlocks(kept, device)
    model = learner.model(blocks.count_words(), blocks, width, device)
    _settle(device)
    started = _CLOCK[0]()
    counted = _CountingModel(model)
    for _ in train(counted, blocks, learner.schedule()):
        pass
    _settle(device)
    known = int((kept["stored:words"] >= 0).sum())
    return Timing(counted.targets, known, _CLOCK[0]() - started, started - begun)


class _CountingModel:
    """A model that counts its targets."""

    def __init__(self, model: object) -> None:
        self.model = model
        self.targets = 0

    def train_block(self, block: ContextBlock, **named: object) -> Iterator[BatchResult]:
        for result in self.model.train_block(block, **named):
            self.targets += result.n_targets
            yield result

    def tensors(self) -> dict[str, Tensor]:
        return self.model.tensors()

    def result(self) -> dict[str, Tensor]:
        return self.model.result()


class PublishedLoop(nn.Module):
    """One table; a target and its negatives are looked up separately."""

    def __init__(self, words: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Embedding(words, dim, sparse=True)
        nn.init.uniform_(self.table.weight, -0.5 / dim, 0.5 / dim)

    def forward(self, contexts: Tensor, targets: Tensor, negatives: Tensor) -> Tensor:
        right = (self.table(targets) * contexts).sum(-1)  # (P,)
        wrong = (self.table(negatives) * contexts[:, None, :]).sum(-1)  # (P, k)
        return -(F.logsigmoid(right).sum() + F.logsigmoid(-wrong).sum())


def _published(kept: Statistics, subsample: float, device: torch.device, limit: float) -> Timing:
    blocks = ContextBlocks(kept, device)
    counts = blocks.count_words()
    noise, keep = NegativeSampler(counts, 0.5), keep_probability(counts, subsample).float()
    model = PublishedLoop(len(counts), kept["stored:contexts"].shape[1]).to(device)
    adam = torch.optim.SparseAdam(model.parameters(), lr=1e-3)
    generator = torch.Generator(device).manual_seed(0)
    targets = words = 0
    spent = 0.0
    for shard in blocks:
        ready = [*_ready(shard, keep, generator)]
        _settle(device)
        begun = _CLOCK[0]()
        for contexts, chosen, passed in ready:
            negatives = noise.draw((len(chosen), 10), generator)
            adam.zero_grad()
            model(contexts, chosen, negatives).backward()
            adam.step()
            targets += len(chosen)
            words += passed
            if spent + _CLOCK[0]() - begun > limit:
                break
        _settle(device)
        spent += _CLOCK[0]() - begun
        if spent > limit:
            break
    return Timing(targets, words, spent)


def _ready(shard: ContextBlock, keep: Tensor, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, int]]:
    """Batches of 128 sentences: contexts of the targets, targets after subsampling, number of known words."""
    sentence = torch.repeat_interleave(torch.arange(len(shard.lengths), device=shard.words.device), shard.lengths)
    chance = torch.rand(len(shard.words), device=shard.words.device, generator=generator)
    known = shard.words >= 0
    chosen = known & (chance < keep[shard.words.clamp_min(0)])
    edges = torch.arange(0, len(shard.lengths) + 128, 128, device=shard.words.device)
    cuts = torch.searchsorted(sentence, edges).tolist()
    for first, last in itertools.pairwise(cuts):
        here = chosen[first:last]
        if bool(here.any()):
            passed = int(known[first:last].sum())
            yield shard.contexts[sentence[first:last][here]], shard.words[first:last][here], passed


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _stores(options: argparse.Namespace, folder: Path) -> tuple[Statistics, Statistics]:
    """Contexts for x2static, and fewer with word states, which are twenty times as large."""
    if options.store is not None:
        contexts = Contexts.open(options.store)
        words = int(contexts.words.max()) + 1
        return _statistics(contexts, words), _cut(contexts, words, options.sentences // 8)
    plain = _generate(options, folder / "contexts", options.sentences, states=False)
    few = _generate(options, folder / "states", max(1, min(options.sentences // 8, 16_384)), states=True)
    return _statistics(plain, options.words), _statistics(few, options.words)


def _generate(options: argparse.Namespace, place: Path, sentences: int, *, states: bool) -> Contexts:
    choose = np.random.default_rng(0)
    shares = 1 / (np.arange(options.words) + 2.7)
    edges = np.cumsum(shares / shares.sum())
    writer = ContextWriter(place, options.dim, states=states)
    for begin in range(0, sentences, 4096):
        size = min(4096, sentences - begin)
        lengths = np.maximum(1, choose.poisson(options.length, size))
        words = np.searchsorted(edges, choose.random(int(lengths.sum()))).clip(max=options.words - 1)
        words[choose.random(len(words)) < 0.02] = -1
        held = torch.randn(len(words), options.dim) if states else None
        writer.add(words, lengths, torch.randn(size, options.dim) / math.sqrt(options.dim), held)
    return writer.close()


def _cut(contexts: Contexts, words: int, sentences: int) -> Statistics:
    """The first sentences of a context cache, with random states if it has none."""
    lengths = contexts.lengths[:sentences]
    rows = int(np.asarray(lengths, np.int64).sum())
    width = contexts.contexts.shape[1]
    states = torch.randn(rows, width).half().numpy() if contexts.states is None else contexts.states[:rows]
    return _statistics(
        Contexts(contexts.words[:rows], lengths, contexts.contexts[:sentences], states, contexts.scale), words
    )


def _statistics(contexts: Contexts, words: int) -> Statistics:
    """The contexts as a learner gets them."""
    return Statistics(Vocabulary([f"w{row}" for row in range(words)]), context_arrays(contexts))


if __name__ == "__main__":
    main()
