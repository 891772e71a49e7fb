"""Time of retrofitting random vectors (400,000 x 300) to PPDB-XL, including reading the lexicon.

    python benchmarks/retrofit.py --lexicon ppdb-xl.txt [--antonyms pairs:FILE] [--words 400000] [--dim 300]

The words of the lexicon come first, so that every edge counts; the rest of the vocabulary is filled up.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from stillvec.lexicons import read_lexicon
from stillvec.refinement.graph_retrofit import GraphRetrofit
from stillvec.refinement.retrofit import Retrofit
from stillvec.vectors import WordVectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lexicon", required=True)
    parser.add_argument("--antonyms", default=[], nargs="*")
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--dim", type=int, default=300)
    options = parser.parse_args()
    words = dict.fromkeys(word for edge in read_lexicon(options.lexicon) for word in edge[:2])
    words |= dict.fromkeys(f"filler{number}" for number in range(options.words))
    chosen = [*words][: options.words]
    table = np.random.default_rng(0).standard_normal((len(chosen), options.dim), np.float32)
    vectors = WordVectors(chosen, table)
    _ = vectors.vocabulary.index
    near, apart = (options.lexicon,), tuple(options.antonyms)
    # random vectors are never similar: with margin=-1 antonyms are pushed apart all the same
    for step in (Retrofit(near), GraphRetrofit(near), *((GraphRetrofit(near, apart, margin=-1),) if apart else ())):
        start = time.perf_counter()
        step(vectors)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        name = type(step).__name__ + (" with antonyms" if getattr(step, "antonyms", ()) else "")
        print(f"{name}: {seconds:.1f} s, {vectors!r}, {step.sweeps} sweeps, {peak:.2f} GiB peak memory", flush=True)


if __name__ == "__main__":
    main()
