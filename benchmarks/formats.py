"""Reading, writing, opening and querying vectors, compared with gensim in one process, on the same words and values.

    python benchmarks/formats.py [--words 400000] [--dim 300] [--times 2] [--queries 1000] [--asking]

word2vec text and binary, written and read by both; our folder opened by memory map (the first lookup is reported
separately, since the words are read then); the ten nearest neighbours of one word, compared with `most_similar`; those
of many words in one batch, compared with the bare matrix product of the same shapes, in blocks, with the result
discarded. The runs alternate, `--times` each, and the best one counts. CPU time is reported as well as wall time:
gensim and our binary reader use one core, our text reader all of them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ratios
from gensim.models import KeyedVectors

from stillvec.formats import load, save
from stillvec.vectors import WordVectors

BLOCK = 8192  # columns of one block of the product


class Timing(NamedTuple):
    wall: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--asking", action="store_true", help="no files, only neighbour queries")
    options = parser.parse_args()
    words = generate_words(options.words)
    table = np.random.default_rng(0).standard_normal((len(words), options.dim), np.float32)
    ours, theirs = WordVectors(words, table), KeyedVectors(options.dim)
    theirs.add_vectors(words, table)
    print(f"{ours!r}")
    with tempfile.TemporaryDirectory() as name:
        if not options.asking:
            measure_files(ours, theirs, Path(name), options.times)
    measure_queries(ours, theirs, options.queries, options.times)


def generate_words(number: int) -> list[str]:
    """Distinct words of two to twelve letters."""
    rng = np.random.default_rng(1)
    letters = rng.choice([*"etaoinshrdlucmfwygpbvkxqzj"], (2 * number, 12), p=_shares(26))
    lengths = np.clip(rng.normal(7.5, 2.2, 2 * number), 2, 12).astype(int)
    words = dict.fromkeys("".join(row[:length]) for row, length in zip(letters.tolist(), lengths, strict=True))
    return [*words][:number]


def _shares(number: int) -> np.ndarray:
    shares = 1 / np.arange(4, 4 + number)
    return shares / shares.sum()


def measure_files(ours: WordVectors, theirs: KeyedVectors, folder: Path, times: int) -> None:
    text, binary = folder / "v.txt", folder / "v.bin"
    save(ours, folder / "folder", force=True)
    opened: dict[str, Any] = {}

    def first_word() -> None:
        opened["vectors"][ours.words[-1]]

    def open_folder() -> None:
        opened["vectors"] = load(folder / "folder")

    best = compare(
        {
            "write text": lambda: save(ours, text, format="word2vec", force=True),
            "write text, gensim": lambda: theirs.save_word2vec_format(str(folder / "gensim.txt")),
            "read text": lambda: load(text),
            "read text, gensim": lambda: KeyedVectors.load_word2vec_format(str(text)),
            "write binary": lambda: save(ours, binary, format="word2vec-binary", force=True),
            "write binary, gensim": lambda: theirs.save_word2vec_format(str(folder / "gensim.bin"), binary=True),
            "read binary": lambda: load(binary),
            "read binary, gensim": lambda: KeyedVectors.load_word2vec_format(str(binary), binary=True),
            "open folder": open_folder,
            "first lookup": first_word,
        },
        times,
    )
    for what in ("write text", "read text", "write binary", "read binary"):
        report(what, best[what], "gensim", best[f"{what}, gensim"])
    print(f"  open folder      {1000 * best['open folder'].wall:8.1f} ms")
    print(f"  first lookup     {1000 * best['first lookup'].wall:8.1f} ms")
    same = np.array_equal(load(text).matrix, ours.matrix)
    print(f"  the values read from text are {'identical' if same else 'NOT IDENTICAL'}")


def measure_queries(ours: WordVectors, theirs: KeyedVectors, queries: int, times: int) -> None:
    queried = [ours.words[row] for row in np.random.default_rng(2).integers(0, len(ours), queries).tolist()]
    ours.nearest(queried[0]), theirs.most_similar(queried[0])  # computes the norms

    def product() -> None:
        targets = ours[queried]
        for first in range(0, len(ours), BLOCK):
            targets @ ours.matrix[first : first + BLOCK].T

    best = compare(
        {
            "one query": lambda: [ours.nearest(word) for word in queried[:10]],
            "one query, gensim": lambda: [theirs.most_similar(word) for word in queried[:10]],
            "queries": lambda: ours.nearest_batch(queried),
            "queries, product": product,
        },
        max(times, 3),
    )
    report("10 single queries", best["one query"], "gensim", best["one query, gensim"])
    report(f"{queries:,} in one batch", best["queries"], "bare product", best["queries, product"])


def compare(runs: dict[str, Callable[[], Any]], times: int) -> dict[str, Timing]:
    timings: dict[str, list[Timing]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            timings[name].append(Timing(time.perf_counter() - wall, time.process_time() - cpu))
    return {name: Timing(min(t.wall for t in runs_), min(t.cpu for t in runs_)) for name, runs_ in timings.items()}


def report(what: str, own: Timing, name: str, other: Timing) -> None:
    ratios.record(what, other.wall / own.wall, f"{own.wall:.2f} s", f"{name} {other.wall:.2f} s")
    print(
        f"  {what:16s} {own.wall:8.2f} s (CPU {own.cpu:7.2f})   "
        f"{name} {other.wall:8.2f} s ({other.cpu:7.2f})   "
        f"ratio {other.wall / own.wall:5.2f} ({other.cpu / own.cpu:5.2f})"
    )


if __name__ == "__main__":
    main()
