"""Estimate the cost of a large corpus on a cluster: time, network and storage, from measured figures.

    python benchmarks/scale.py [--words 1e12] [--teacher mpnet] [--gpus 8 64 512] [--vocabulary 1000000] [--tables N]
    python benchmarks/scale.py --measure TEXT     # measures the CPU figures on this machine first

All figures are in `TEACHERS` and `Figures`; the rest is arithmetic. GPU figures are from docs/performance.md, CPU
figures are what --measure prints for 12 MB of English novels, in CPU time, so that other load does not matter.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stillvec.corpus import Corpus
from stillvec.distributed.ray_jobs import merge_jobs
from stillvec.learners.partition import Partition
from stillvec.pipeline.corpus_counts import count_partition
from stillvec.pipeline.count_pool import count_corpus
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.pipeline.settings import Training
from stillvec.progress import drain

HEADERS = {
    "scale-storage": "| stored | bytes |",
    "scale-time": "| GPUs | counting | forward pass | GPU-hours | merging | network per GPU |",
    "scale-sequential": "| sequential, regardless of the number of GPUs | time |",
}
TEACHERS = {  # tokens/s of the bare forward pass on one H200, the ratio that a whole run reaches, dimensions
    "mpnet": (1835e3, 0.88, 768),
    "minilm": (9393e3, 0.82, 384),
}


@dataclass(frozen=True)
class Figures:
    """Measured values; those of CPUs are per core."""

    tokens_per_word: float = 1.27
    words_per_sentence: float = 23.3
    bytes_per_word: float = 5.57  # plain text
    compressed: float = 0.27  # relative size as .xz
    count_rate: float = 3.3e6  # words/s: counting
    scan_rate: float = 2.5e7  # words/s: scanning text that other processes use
    select_rate: float = 1.85e6  # words/s: selecting sentences, sequentially
    merge_rate: float = 9.4e8  # bytes/s: merging two tables
    cores: int = 16  # per GPU
    network: float = 1.25e9  # bytes/s per machine: assumed, 10 Gbit/s
    disk: float = 0.5e9  # bytes/s of a shared file system per machine: assumed
    job: float = 64e6  # bytes of compressed files per Ray job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=float, default=1e12)
    parser.add_argument("--teacher", choices=[*TEACHERS], default="mpnet")
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--vocabulary", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=1, help="tables per job: 1 for aggregate, more for auto")
    parser.add_argument("--measure", metavar="TEXT")
    options = parser.parse_args()
    figures = Figures()
    if options.measure:
        figures = measure(Path(options.measure), figures)
        for name, value in dataclasses.asdict(figures).items():
            print(f"{name:18} {value:,.6g}")
        print()
    rate, share, dim = TEACHERS[options.teacher]
    cost = Cost(figures, options.words, rate * share, options.vocabulary, dim, options.tables)
    print(f"{options.words:,.3g} words, {options.teacher}, {options.vocabulary:,} words in {dim} dimensions\n")
    print(cost.storage(), end="\n\n")
    print(cost.times(options.gpus), end="\n\n")
    print(cost.streams())


@dataclass(frozen=True)
class Cost:
    """The cost model: a worker counts, encodes, and sends one table per job; tables are merged on the CPUs."""

    figures: Figures
    words: float
    tokens_per_second: float
    vocabulary: int
    dim: int
    tables: int

    @property
    def table(self) -> float:
        """Bytes of the statistics of a job."""
        return 4.0 * self.vocabulary * self.dim * self.tables

    @property
    def jobs(self) -> float:
        figures = self.figures
        return max(1.0, self.words * figures.bytes_per_word * figures.compressed / figures.job)

    def storage(self) -> str:
        figures = self.figures
        text = self.words * figures.bytes_per_word
        sentences = self.words / figures.words_per_sentence
        contexts = 4 * (self.words + sentences) + 2 * self.dim * sentences
        vectors = 4.0 * self.vocabulary * self.dim
        rows = {
            "text, plain and compressed": f"{format_size(text)}, {format_size(text * figures.compressed)}",
            "vectors, and their statistics": f"{format_size(vectors)}, {format_size(self.table)}",
            "context cache of a method that trains": format_size(contexts),
            "the same with word states": format_size(contexts + 2 * self.dim * self.words),
        }
        return _table("scale-storage", [[*row] for row in rows.items()])

    def times(self, gpus: list[int]) -> str:
        return _table("scale-time", [self._row(number) for number in gpus])

    def streams(self) -> str:
        """What more GPUs do not make faster."""
        figures = self.figures
        rows = {
            "selecting sentences (`--contexts N`)": format_time(self.words / figures.select_rate),
            "a torchrun process scans the plain text": format_time(self.words / figures.scan_rate),
        }
        return _table("scale-sequential", [[*row] for row in rows.items()])

    def _row(self, gpus: int) -> list[str]:
        figures = self.figures
        compressed = self.words * figures.bytes_per_word * figures.compressed
        counting = max(self.words / (figures.count_rate * figures.cores * gpus), compressed / (figures.disk * gpus))
        reading = self.words * figures.tokens_per_word / (self.tokens_per_second * gpus)
        moved = self.jobs * self.table / gpus  # each table is sent once
        merging = max(moved / (figures.merge_rate * max(1, figures.cores // 4)), moved / figures.network)
        network = (compressed / gpus + moved) / reading
        return [
            f"{gpus:,}",
            format_time(counting),
            format_time(reading),
            f"{reading * gpus / 3600:,.0f}",
            f"{format_time(merging)} ({merging / reading:.0%})",
            f"{format_size(network)}/s",
        ]


def measure(text: Path, figures: Figures) -> Figures:
    """Measure one core on this text; the figures of the teacher and the GPU stay."""
    corpus = Corpus(text)
    counting = cpu_seconds(lambda: [*count_partition(corpus, Training())])
    through = cpu_seconds(lambda: [*count_partition(corpus, Training(), Partition(1, 10_000))])
    vocabulary, count = drain(count_corpus(corpus, Training()))
    choosing = cpu_seconds(lambda: [*SentenceStream(corpus, vocabulary, 20, 8192).chunks()])
    tables: list[dict[int, dict[str, np.ndarray]]] = [
        {0: {"sum:states": np.ones((100_000, 768), np.float32)}} for _ in range(2)
    ]
    size = 2 * tables[0][0]["sum:states"].nbytes
    sentences = sum(1 for _ in corpus.sentences())
    return dataclasses.replace(
        figures,
        words_per_sentence=count.n_words / sentences,
        bytes_per_word=sum(len(paragraph.encode()) + 1 for paragraph in corpus.paragraphs()) / count.n_words,
        count_rate=count.n_words / counting,
        scan_rate=count.n_words / through,
        select_rate=count.n_words / choosing,
        merge_rate=size / cpu_seconds(lambda: merge_jobs(*tables)),
    )


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def format_time(seconds: float) -> str:
    if seconds < 7200:
        return f"{seconds / 60:,.1f} min"
    return f"{seconds / 3600:,.1f} h" if seconds < 10 * 86400 else f"{seconds / 86400:,.0f} days"


def format_size(size: float) -> str:
    for unit, scale in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size / 1e3:,.1f} kB"


def _table(name: str, rows: list[list[str]]) -> str:
    lines = [["---"] * len(rows[0]), *rows]
    return "\n".join([HEADERS[name], *("| " + " | ".join(line) + " |" for line in lines)])


if __name__ == "__main__":
    main()
