"""What a large corpus costs on a cluster: time, network and storage, from figures that were measured.

    python benchmarks/scale.py [--words 1e12] [--teacher mpnet] [--gpus 8 64 512] [--vocabulary 1000000] [--tables N]
    python benchmarks/scale.py --measure TEXT     # the figures of a processor, taken here anew, then the tables

The figures stand in `TEACHERS` and `Figures`, and nowhere else; the rest is arithmetic. Those of the GPU are of
docs/performance.md, those of a processor are what --measure prints for 12 MB of English novels: seconds of the
processor, so that a busy machine counts as a free one.
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
from stillvec.distributed.ray_jobs import merged
from stillvec.learners.partition import Partition
from stillvec.pipeline.sentence_stream import CorpusCounter, SentenceStream
from stillvec.vocabulary import Vocabulary, WordCounter

TEACHERS = {  # pieces a second of the bare pass on one H200, the share of it that a whole run reaches, dimensions
    "mpnet": (1835e3, 0.88, 768),
    "minilm": (9393e3, 0.82, 384),
}


@dataclass(frozen=True)
class Figures:
    """What was measured; a processor's are of one core."""

    pieces_a_word: float = 1.27
    words_a_sentence: float = 23.3
    bytes_a_word: float = 5.57  # of plain text
    packed: float = 0.27  # of these, as .xz
    counted: float = 3.3e6  # words a second of a core,
    read_through: float = 2.5e7  # of text that others count or read,
    chosen: float = 1.85e6  # of which sentences are chosen, which is one stream
    merged: float = 9.4e8  # bytes a second of two tables that become one
    cores: int = 16  # beside each GPU
    network: float = 1.25e9  # bytes a second of a machine: not measured, 10 Gbit/s
    disk: float = 0.5e9  # bytes a second of a shared file system, a machine: not measured
    job: float = 64e6  # bytes of packed files that are one job of a Ray worker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=float, default=1e12)
    parser.add_argument("--teacher", choices=[*TEACHERS], default="mpnet")
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--vocabulary", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=1, help="of a row a word: 1 for aggregate, more for auto")
    parser.add_argument("--measure", metavar="TEXT")
    options = parser.parse_args()
    figures = Figures()
    if options.measure:
        figures = measured(Path(options.measure), figures)
        for name, value in dataclasses.asdict(figures).items():
            print(f"{name:18} {value:,.6g}")
        print()
    rate, share, dim = TEACHERS[options.teacher]
    cost = Cost(figures, options.words, rate * share, options.vocabulary, dim, options.tables)
    print(f"{options.words:,.3g} words, {options.teacher}, {options.vocabulary:,} words of {dim} dimensions\n")
    print(cost.storage(), end="\n\n")
    print(cost.times(options.gpus), end="\n\n")
    print(cost.streams())


@dataclass(frozen=True)
class Cost:
    """The model. A worker counts, reads, and hands on a table a job; tables are merged on the machines' processors."""

    figures: Figures
    words: float
    pieces_a_second: float
    vocabulary: int
    dim: int
    tables: int

    @property
    def table(self) -> float:
        """Bytes of a job's statistics."""
        return 4.0 * self.vocabulary * self.dim * self.tables

    @property
    def jobs(self) -> float:
        figures = self.figures
        return max(1.0, self.words * figures.bytes_a_word * figures.packed / figures.job)

    def storage(self) -> str:
        figures = self.figures
        text = self.words * figures.bytes_a_word
        sentences = self.words / figures.words_a_sentence
        kept = 4 * (self.words + sentences) + 2 * self.dim * sentences
        rows = {
            "text, plain and packed": f"{spelt(text)}, {spelt(text * figures.packed)}",
            "vectors, and statistics beside them": f"{spelt(4.0 * self.vocabulary * self.dim)}, {spelt(self.table)}",
            "contexts of a method that trains": spelt(kept),
            "the same with the states of words": spelt(kept + 2 * self.dim * self.words),
        }
        return _table(("kept", "bytes"), [[*row] for row in rows.items()])

    def times(self, gpus: list[int]) -> str:
        head = ("GPUs", "counting", "reading all", "GPU-hours", "merging", "network a GPU")
        return _table(head, [self._row(number) for number in gpus])

    def streams(self) -> str:
        """What does not become shorter with more GPUs."""
        figures = self.figures
        rows = {
            "sentences chosen (`--contexts N`)": hours(self.words / figures.chosen),
            "a process of torchrun reads through the text, plain": hours(self.words / figures.read_through),
        }
        return _table(("one stream, however many GPUs", "time"), [[*row] for row in rows.items()])

    def _row(self, gpus: int) -> list[str]:
        figures = self.figures
        packed = self.words * figures.bytes_a_word * figures.packed
        counting = max(self.words / (figures.counted * figures.cores * gpus), packed / (figures.disk * gpus))
        reading = self.words * figures.pieces_a_word / (self.pieces_a_second * gpus)
        moved = self.jobs * self.table / gpus  # each job's table goes up the tree once
        merging = max(moved / (figures.merged * max(1, figures.cores // 4)), moved / figures.network)
        network = (packed / gpus + moved) / reading
        return [
            f"{gpus:,}",
            hours(counting),
            hours(reading),
            f"{reading * gpus / 3600:,.0f}",
            f"{hours(merging)} ({merging / reading:.0%})",
            f"{spelt(network)}/s",
        ]


def measured(text: Path, figures: Figures) -> Figures:
    """Figures of one core, on this text; pieces a word and pace of a GPU are a teacher's, and stay."""
    corpus, counter = Corpus(text), WordCounter()
    count = CorpusCounter(corpus, counter)
    counting = spent(lambda: [*count.steps()])
    through = spent(lambda: [*CorpusCounter(corpus, WordCounter(), Partition(1, 10_000)).steps()])
    vocabulary = Vocabulary.build(counter.counts())
    choosing = spent(lambda: [*SentenceStream(corpus, vocabulary, 20, 8192).chunks()])
    tables: list[dict[int, dict[str, np.ndarray]]] = [
        {0: {"sum:states": np.ones((100_000, 768), np.float32)}} for _ in range(2)
    ]
    size = 2 * tables[0][0]["sum:states"].nbytes
    sentences = sum(1 for _ in corpus.sentences())
    return dataclasses.replace(
        figures,
        words_a_sentence=count.words / sentences,
        bytes_a_word=sum(len(paragraph.encode()) + 1 for paragraph in corpus.paragraphs()) / count.words,
        counted=count.words / counting,
        read_through=count.words / through,
        chosen=count.words / choosing,
        merged=size / spent(lambda: merged(*tables)),
    )


def spent(work: Callable[[], object]) -> float:
    """Seconds of the processor."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def hours(seconds: float) -> str:
    if seconds < 7200:
        return f"{seconds / 60:,.1f} min"
    return f"{seconds / 3600:,.1f} h" if seconds < 10 * 86400 else f"{seconds / 86400:,.0f} days"


def spelt(size: float) -> str:
    for unit, scale in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size / 1e3:,.1f} kB"


def _table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [[*head], ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
