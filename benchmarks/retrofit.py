"""Seconds of retrofitting a table of random vectors (400,000 x 300) to PPDB-XL, reading the lexicon included.

    python benchmarks/retrofit.py --lexicon ppdb-xl.txt [--words 400000] [--dim 300] [--sweeps 10]

The lexicon's own words come first, so that every edge counts; the rest of the table is filled up.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from stillvec.lexicons import read_lexicon
from stillvec.refine.graph_retrofit import GraphRetrofit
from stillvec.refine.retrofit import Retrofit
from stillvec.vectors import WordVectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lexicon", required=True)
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--sweeps", type=int, default=10)
    options = parser.parse_args()
    words = dict.fromkeys(word for edge in read_lexicon(options.lexicon) for word in edge[:2])
    words |= dict.fromkeys(f"filling{number}" for number in range(options.words))
    chosen = [*words][: options.words]
    table = np.random.default_rng(0).standard_normal((len(chosen), options.dim), np.float32)
    vectors = WordVectors(chosen, table)
    _ = vectors.vocabulary.index
    for step in (
        Retrofit((options.lexicon,), options.sweeps),
        GraphRetrofit((options.lexicon,), sweeps=options.sweeps),
    ):
        start = time.perf_counter()
        step(vectors)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{type(step).__name__}: {seconds:.1f} s, {vectors!r}, {options.sweeps} sweeps, {peak:.2f} GiB at most")


if __name__ == "__main__":
    main()
