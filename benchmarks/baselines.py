"""Words a second of `stillvec train` beside gensim called by hand, on the same sentences, words and threads.

    python benchmarks/baselines.py CORPUS... [--methods a,b] [--threads N] [--dim N] [--epochs N] [--times N]

A word is one of the sentences, known, once an epoch: words x epochs / seconds, whatever a method makes of it (gensim
leaves frequent words out at random, Sent2vec frequent targets, GloVe goes over pairs and not over words). Seconds are
those of the training, counted pairs of GloVe and the reading of our rows included; the two readings of the corpus that
all methods share, and the lines that gensim trains on, are told apart. gensim by hand trains on the same file of lines
with the same settings. Seconds of the processor stand beside those of the clock: on a machine that others use too, only
they can be compared. Each is run `--times`, in turn; the best one counts, beside the first by both. One epoch goes
before, untimed, so that what is compiled once is not counted each time.
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

from stillvec.baselines import BASELINES, EncodedCorpus, Resources, write_text
from stillvec.baselines.gensim_trainer import GensimBaseline
from stillvec.corpus import Corpus
from stillvec.pipeline.corpus_counts import count_corpus
from stillvec.pipeline.training_run import Training


class Timed(NamedTuple):
    """What a run took."""

    clock: float
    processor: float


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
        text = _end(write_text(corpus, vocabulary, Path(folder)))
        read = time.perf_counter() - begun
        text.lines.exists()
        lines = time.perf_counter() - begun - read
        print(
            f"{facts['words']:,} words, {text.words:,} of them known and in sentences, {len(vocabulary):,} different; "
            f"read twice in {read:.1f} s, lines written for gensim in {lines:.1f} s; "
            f"{options.threads} threads, {options.dim} dimensions, {options.epochs} epochs"
        )
        _compare(options, text)


def _compare(options: argparse.Namespace, text: EncodedCorpus) -> None:
    runs: dict[str, Callable[[], Timed]] = {}
    for name in options.methods.split(","):
        method = BASELINES[name](dim=options.dim, epochs=options.epochs)
        if isinstance(method, GensimBaseline):
            runs[f"gensim's {name}, by hand"] = lambda method=method: _by_hand(method, text, options.threads)
        runs[name] = lambda method=method: _timed(lambda: _end(method.steps(text, Resources(options.threads))))
        if not isinstance(method, GensimBaseline):
            _end(replace(method, epochs=1).steps(text, Resources(options.threads)))
    found: dict[str, list[Timed]] = {name: [] for name in runs}
    for _ in range(options.times):
        for name, run in runs.items():
            found[name].append(run())
    words = text.words * options.epochs
    best = {name: Timed(*map(min, zip(*times, strict=True))) for name, times in found.items()}
    beside = next(iter(best))
    for name, (clock, processor) in best.items():
        told = f"{words / clock:12,.0f} words a second {words / processor:12,.0f} of processor"
        times = f"{best[beside].clock / clock:5.2f} and {best[beside].processor / processor:5.2f}"
        print(f"  {name:24s} {told}, {times} times {beside}")
        if name in BASELINES:
            peer = f"gensim's {name}, by hand" if f"gensim's {name}, by hand" in best else beside
            paces = f"{words / clock:,.0f} words/s", f"{peer} {words / best[peer].clock:,.0f}"
            ratios.tell(f"training {name}", best[peer].clock / clock, *paces)


def _by_hand(method: GensimBaseline, text: EncodedCorpus, threads: int) -> Timed:
    """gensim's own training, and nothing of ours around it."""

    def train() -> None:
        model = method.model(text.vocabulary, threads)
        model.build_vocab_from_freq(dict(zip(text.known, text.known.counts.tolist(), strict=True)))
        given = {"total_examples": text.sentences, "total_words": text.words, "epochs": method.epochs}
        model.train(corpus_file=str(text.lines), **given)

    return _timed(train)


def _timed(work: Callable[[], object]) -> Timed:
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return Timed(time.perf_counter() - clock, time.process_time() - processor)


def _end(steps: Generator[Any, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


if __name__ == "__main__":
    main()
