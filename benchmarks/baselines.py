"""Words per second of `stillvec train` compared with gensim called directly, on the same sentences, words and threads.

    python benchmarks/baselines.py CORPUS... [--methods a,b] [--threads N] [--dim N] [--epochs N] [--times N]

Speed is known words x epochs / seconds, whatever a method does with them (gensim drops frequent words at random,
Sent2vec frequent targets, GloVe iterates over pairs). The time includes training, GloVe's pair counts and reading our
rows; the two passes over the corpus that all methods share, and the lines that gensim trains on, are reported
separately. gensim trains on the same file with the same settings. CPU time is reported as well as wall time: on a
shared machine only CPU time can be compared. The runs alternate, `--times` each, and the best one counts. One epoch is
run first, so that compilation is not measured.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import ratios

from stillvec.baselines import BASELINES, EncodedCorpus, Resources, encode_corpus
from stillvec.baselines.gensim_methods import GensimBaseline
from stillvec.corpus import Corpus
from stillvec.pipeline.count_pool import count_corpus
from stillvec.pipeline.settings import Training


class Timing(NamedTuple):
    """The cost of a run."""

    wall: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--methods", default="cbow,skipgram,glove,sent2vec")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--min-count", type=int, default=5)
    options = parser.parse_args()
    corpus = Corpus(*options.corpus)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        vocabulary, facts = _end(count_corpus(corpus, Training(min_count=options.min_count)))
        text = _end(encode_corpus(corpus, vocabulary, Path(folder)))
        read = time.perf_counter() - begun
        text.lines.exists()
        lines = time.perf_counter() - begun - read
        print(
            f"{facts.n_words:,} words, {text.n_words:,} of them known and in sentences, {len(vocabulary):,} distinct; "
            f"read twice in {read:.1f} s, lines written for gensim in {lines:.1f} s; "
            f"{options.threads} threads, {options.dim} dimensions, {options.epochs} epochs"
        )
        _compare(options, text)


def _compare(options: argparse.Namespace, text: EncodedCorpus) -> None:
    runs: dict[str, Callable[[], Timing]] = {}
    for name in options.methods.split(","):
        method = BASELINES[name](dim=options.dim, epochs=options.epochs)
        if isinstance(method, GensimBaseline):
            runs[f"gensim's {name}, called directly"] = lambda method=method: _call_gensim(
                method, text, options.threads
            )
        runs[name] = lambda method=method: _measure(lambda: _end(method.steps(text, Resources(options.threads))))
        if not isinstance(method, GensimBaseline):
            _end(replace(method, epochs=1).steps(text, Resources(options.threads)))
    timings: dict[str, list[Timing]] = {name: [] for name in runs}
    for _ in range(options.times):
        for name, run in runs.items():
            timings[name].append(run())
    words = text.n_words * options.epochs
    best = {name: Timing(*map(min, zip(*times, strict=True))) for name, times in timings.items()}
    reference = next(iter(best))
    for name, (wall, cpu) in best.items():
        speeds = f"{words / wall:12,.0f} words/s {words / cpu:12,.0f} words per CPU second"
        times = f"{best[reference].wall / wall:5.2f} and {best[reference].cpu / cpu:5.2f}"
        print(f"  {name:30s} {speeds}, {times} times {reference}")
        if name in BASELINES:
            peer = f"gensim's {name}, called directly" if f"gensim's {name}, called directly" in best else reference
            speeds = f"{words / wall:,.0f} words/s", f"{peer} {words / best[peer].wall:,.0f}"
            ratios.record(f"training {name}", best[peer].wall / wall, *speeds)


def _call_gensim(method: GensimBaseline, text: EncodedCorpus, threads: int) -> Timing:
    """Train with gensim itself, without any of our code."""

    def train() -> None:
        model = method.model(text.vocabulary, threads)
        model.build_vocab_from_freq(dict(zip(text.known, text.known.counts.tolist(), strict=True)))
        settings = {"total_examples": text.n_sentences, "total_words": text.n_words, "epochs": method.epochs}
        model.train(corpus_file=str(text.lines), **settings)

    return _measure(train)


def _measure(work: Callable[[], object]) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Timing(time.perf_counter() - wall, time.process_time() - cpu)


def _end(steps: Generator[Any, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


if __name__ == "__main__":
    main()
