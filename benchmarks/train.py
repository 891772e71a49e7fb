"""X2Static's targets a second beside a plain PyTorch loop of the published kind, on the same contexts, in one run.

    python benchmarks/train.py [--sentences N] [--words N] [--dim N] [--device cpu|cuda] [--store DIR] [--threads N]

The contexts are made up (words by Zipf's law, one in fifty unknown) and written to a store of the usual form, or read
from a real one (`--store`, a folder with a store.json). Ours is the whole epoch as `distill` trains it, reading from
the store included; the start from the closed form is timed beside it. The published kind: batches of 128 sentences, an
`nn.Embedding(sparse=True)`, one lookup a negative, autograd, `SparseAdam`; contexts, words and subsampling lie ready in
its device's memory, and its time has no reading in it. It runs `--seconds`, not the whole epoch.

A target is an occurrence of a word that subsampling leaves in, whichever loop: one that is trained, with its ten
negatives. The defaults leave in more of a text than the paper's settings do, so the published loop runs with either
subsampling, and ours is held against the one with its own. Words a second (all known words that an epoch passes, left
in or out) stand beside. A centre, of the methods with windows, is a word with a known one around it. Each is run
`--times`, in turn; the best one counts.
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

from stillvec.encoding import Contexts, ContextWriter
from stillvec.learners import LEARNERS
from stillvec.learners.context_blocks import ContextBlock, iterate_blocks, kept_counts
from stillvec.learners.row_optimizers import NegativeSampler, keep_probability
from stillvec.learners.stored_contexts import kept_arrays
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.training_loop import train
from stillvec.learners.x2static import X2Static
from stillvec.registry import settings_from
from stillvec.statistics import Statistics
from stillvec.vocabulary import Vocabulary

RUNS: dict[str, tuple[str, dict[str, object]]] = {
    "x2static, its defaults": ("x2static", {}),
    "x2static, gupta-jaggi-2021": ("x2static", {"settings": "gupta-jaggi-2021"}),
    "attentive_skipgram, its defaults": ("attentive_skipgram", {}),
    "attentive_skipgram, wang-2020": ("attentive_skipgram", {"settings": "wang-2020"}),
    "context_to_vec, its defaults": ("context_to_vec", {}),
    "context_to_vec, zheng-2022": ("context_to_vec", {"settings": "zheng-2022"}),
}


class Timed(NamedTuple):
    """What came of a run."""

    targets: int
    words: int
    seconds: float
    start: float = 0.0  # seconds before the first batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=50_000)
    parser.add_argument("--length", type=int, default=20, help="words a sentence, on average")
    parser.add_argument("--words", type=int, default=50_000, help="of the vocabulary")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, help="of torch, on a CPU")
    parser.add_argument("--store", type=Path, help="a real store of contexts, in place of made-up ones")
    parser.add_argument("--seconds", type=float, default=10.0, help="for the published loop")
    parser.add_argument("--times", type=int, default=3, help="each is run")
    parser.add_argument("--only", default="", help="runs whose name has this in it")
    options = parser.parse_args()
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
    found: dict[str, list[Timed]] = {}
    for _ in range(options.times):
        for name, learner in chosen.items():
            if options.only not in name:
                continue
            if isinstance(learner, X2Static):
                run = _published(plain, learner.subsample, device, options.seconds)
                found.setdefault(_beside(learner), []).append(run)
            kept = plain if isinstance(learner, X2Static) else few
            found.setdefault(name, []).append(_epoch(learner, kept, device))
    paces = {name: max(run.targets / run.seconds for run in runs) for name, runs in found.items()}
    for name, runs in found.items():
        best = max(runs, key=lambda run: run.targets / run.seconds)
        learner = chosen.get(name)
        ratio = f"{paces[name] / paces[_beside(learner)]:8.1f} times" if isinstance(learner, X2Static) else ""
        unit = "targets" if learner is None or ratio else "centres"
        if isinstance(learner, X2Static):
            other = paces[_beside(learner)]
            ratios.tell(f"training {name}", paces[name] / other, f"{paces[name]:,.0f} targets/s", f"loop {other:,.0f}")
        print(
            f"  {name:40s} {paces[name]:12,.0f} {unit} a second {best.words / best.seconds:12,.0f} words a second "
            f"{best.start:8.2f} s to start {ratio}"
        )


def _beside(learner: X2Static) -> str:
    """The name of the loop that it is held against."""
    return f"published kind of loop, t = {learner.subsample:g}"


def _epoch(learner: TrainedLearner, kept: Statistics, device: torch.device) -> Timed:
    """One epoch as the learner trains it."""
    begun = time.perf_counter()
    width = kept["stored:contexts"].shape[1]
    model = learner.model(kept_counts(kept).to(device), lambda: iterate_blocks(kept, device), width, device)
    _settle(device)
    started = time.perf_counter()
    counted = _Counted(model)
    for _ in train(counted, kept, learner.course(), device):
        pass
    _settle(device)
    known = int((kept["stored:words"] >= 0).sum())
    return Timed(counted.targets, known, time.perf_counter() - started, started - begun)


class _Counted:
    """A model whose targets are counted."""

    def __init__(self, model: object) -> None:
        self.model = model
        self.targets = 0

    def learn(self, *given: object) -> Iterator[tuple[Tensor, int, float]]:
        for loss, targets, share in self.model.learn(*given):
            self.targets += targets
            yield loss, targets, share

    def tensors(self) -> dict[str, Tensor]:
        return self.model.tensors()

    def result(self) -> dict[str, Tensor]:
        return self.model.result()


class PublishedLoop(nn.Module):
    """One table; a target and its negatives are looked up row by row."""

    def __init__(self, words: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Embedding(words, dim, sparse=True)
        nn.init.uniform_(self.table.weight, -0.5 / dim, 0.5 / dim)

    def forward(self, contexts: Tensor, targets: Tensor, negatives: Tensor) -> Tensor:
        right = (self.table(targets) * contexts).sum(-1)  # (P,)
        wrong = (self.table(negatives) * contexts[:, None, :]).sum(-1)  # (P, k)
        return -(F.logsigmoid(right).sum() + F.logsigmoid(-wrong).sum())


def _published(kept: Statistics, subsample: float, device: torch.device, limit: float) -> Timed:
    counts = kept_counts(kept).to(device)
    noise, keep = NegativeSampler(counts, 0.5), keep_probability(counts, subsample)
    model = PublishedLoop(len(counts), kept["stored:contexts"].shape[1]).to(device)
    adam = torch.optim.SparseAdam(model.parameters(), lr=1e-3)
    generator = torch.Generator(device).manual_seed(0)
    targets = words = 0
    spent = 0.0
    for shard in iterate_blocks(kept, device):
        ready = [*_ready(shard, keep, generator)]
        _settle(device)
        begun = time.perf_counter()
        for contexts, chosen, passed in ready:
            negatives = noise.draw((len(chosen), 10), generator)
            adam.zero_grad()
            model(contexts, chosen, negatives).backward()
            adam.step()
            targets += len(chosen)
            words += passed
            if spent + time.perf_counter() - begun > limit:
                break
        _settle(device)
        spent += time.perf_counter() - begun
        if spent > limit:
            break
    return Timed(targets, words, spent)


def _ready(shard: ContextBlock, keep: Tensor, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, int]]:
    """Batches of 128 sentences: each target's context, the targets that are left in, the known words."""
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
    """Contexts for x2static, and fewer with the states of words, which are twenty times as large."""
    if options.store is not None:
        contexts = Contexts.open(options.store)
        words = int(contexts.words.max()) + 1
        return _statistics(contexts, words), _cut(contexts, words, options.sentences // 8)
    plain = _made_up(options, folder / "contexts", options.sentences, states=False)
    few = _made_up(options, folder / "states", max(1, min(options.sentences // 8, 16_384)), states=True)
    return _statistics(plain, options.words), _statistics(few, options.words)


def _made_up(options: argparse.Namespace, place: Path, sentences: int, *, states: bool) -> Contexts:
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
    """The first sentences of a store; states are made up where it has none."""
    lengths = contexts.lengths[:sentences]
    rows = int(np.asarray(lengths, np.int64).sum())
    width = contexts.contexts.shape[1]
    states = torch.randn(rows, width).half().numpy() if contexts.states is None else contexts.states[:rows]
    return _statistics(
        Contexts(contexts.words[:rows], lengths, contexts.contexts[:sentences], states, contexts.scale), words
    )


def _statistics(contexts: Contexts, words: int) -> Statistics:
    """As a learner hears them."""
    return Statistics(Vocabulary([f"w{row}" for row in range(words)]), kept_arrays(contexts))


if __name__ == "__main__":
    main()
