"""Reading, writing, opening and asking vectors beside gensim, in one process, on the same words and numbers.

    python benchmarks/formats.py [--words 400000] [--dim 300] [--times 2] [--queries 1000] [--asking]

Text and binary of word2vec, written and read by both; our folder opened by memory map (the first word asked for stands
apart: only then the words are read); the ten nearest of one word against `most_similar`; the ten nearest of many words
at once against the bare matrix product of the same shapes, block by block and thrown away. Each is run `--times`, in
turn; the best one of each counts. Seconds of the processor stand beside those of the clock: gensim and our reading of
binary use one core, our text all of them.
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


class Timed(NamedTuple):
    clock: float
    processor: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--asking", action="store_true", help="no files, only the nearest")
    options = parser.parse_args()
    words = made_up(options.words)
    table = np.random.default_rng(0).standard_normal((len(words), options.dim), np.float32)
    ours, theirs = WordVectors(words, table), KeyedVectors(options.dim)
    theirs.add_vectors(words, table)
    print(f"{ours!r}")
    with tempfile.TemporaryDirectory() as name:
        if not options.asking:
            files(ours, theirs, Path(name), options.times)
    nearest(ours, theirs, options.queries, options.times)


def made_up(number: int) -> list[str]:
    """Words of two to twelve letters, all different."""
    rng = np.random.default_rng(1)
    letters = rng.choice([*"etaoinshrdlucmfwygpbvkxqzj"], (2 * number, 12), p=_shares(26))
    lengths = np.clip(rng.normal(7.5, 2.2, 2 * number), 2, 12).astype(int)
    found = dict.fromkeys("".join(row[:length]) for row, length in zip(letters.tolist(), lengths, strict=True))
    return [*found][:number]


def _shares(number: int) -> np.ndarray:
    shares = 1 / np.arange(4, 4 + number)
    return shares / shares.sum()


def files(ours: WordVectors, theirs: KeyedVectors, folder: Path, times: int) -> None:
    text, binary = folder / "v.txt", folder / "v.bin"
    save(ours, folder / "folder")
    opened: dict[str, Any] = {}

    def first_word() -> None:
        opened["vectors"][ours.words[-1]]

    def open_folder() -> None:
        opened["vectors"] = load(folder / "folder")

    best = compare(
        {
            "write text": lambda: save(ours, text, format="word2vec"),
            "write text, gensim": lambda: theirs.save_word2vec_format(str(folder / "gensim.txt")),
            "read text": lambda: load(text),
            "read text, gensim": lambda: KeyedVectors.load_word2vec_format(str(text)),
            "write binary": lambda: save(ours, binary, format="word2vec-binary"),
            "write binary, gensim": lambda: theirs.save_word2vec_format(str(folder / "gensim.bin"), binary=True),
            "read binary": lambda: load(binary),
            "read binary, gensim": lambda: KeyedVectors.load_word2vec_format(str(binary), binary=True),
            "open folder": open_folder,
            "its first word": first_word,
        },
        times,
    )
    for what in ("write text", "read text", "write binary", "read binary"):
        tell(what, best[what], "gensim", best[f"{what}, gensim"])
    print(f"  open folder      {1000 * best['open folder'].clock:8.1f} ms")
    print(f"  its first word   {1000 * best['its first word'].clock:8.1f} ms")
    same = np.array_equal(load(text).matrix, ours.matrix)
    print(f"  the numbers of the text are {'the same bits' if same else 'NOT THE SAME'}")


def nearest(ours: WordVectors, theirs: KeyedVectors, queries: int, times: int) -> None:
    asked = [ours.words[row] for row in np.random.default_rng(2).integers(0, len(ours), queries).tolist()]
    ours.nearest(asked[0]), theirs.most_similar(asked[0])  # norms

    def product() -> None:
        wanted = ours[asked]
        for first in range(0, len(ours), BLOCK):
            wanted @ ours.matrix[first : first + BLOCK].T

    best = compare(
        {
            "one query": lambda: [ours.nearest(word) for word in asked[:10]],
            "one query, gensim": lambda: [theirs.most_similar(word) for word in asked[:10]],
            "queries": lambda: ours.nearest_batch(asked),
            "queries, product": product,
        },
        max(times, 3),
    )
    tell("10 queries apart", best["one query"], "gensim", best["one query, gensim"])
    tell(f"{queries:,} at once", best["queries"], "the product", best["queries, product"])


def compare(runs: dict[str, Callable[[], Any]], times: int) -> dict[str, Timed]:
    found: dict[str, list[Timed]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            clock, processor = time.perf_counter(), time.process_time()
            run()
            found[name].append(Timed(time.perf_counter() - clock, time.process_time() - processor))
    return {name: Timed(min(t.clock for t in all_), min(t.processor for t in all_)) for name, all_ in found.items()}


def tell(what: str, own: Timed, name: str, other: Timed) -> None:
    ratios.tell(what, other.clock / own.clock, f"{own.clock:.2f} s", f"{name} {other.clock:.2f} s")
    print(
        f"  {what:16s} {own.clock:8.2f} s (processor {own.processor:7.2f})   "
        f"{name} {other.clock:8.2f} s ({other.processor:7.2f})   "
        f"ratio {other.clock / own.clock:5.2f} ({other.processor / own.processor:5.2f})"
    )


if __name__ == "__main__":
    main()
