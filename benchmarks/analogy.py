"""Google's 19,544 analogies on a random matrix (400,000 x 300), compared with a bare matrix product of these shapes.

    python benchmarks/analogy.py --questions google.txt [--words 400000] [--dim 300] [--form 3cosadd ...]

The product is that of the targets (questions x dim) with the matrix (dim x words), in blocks, with the result
discarded: no cosines, no maximum. The ratio is its time divided by ours; it can exceed 1, since questions share words.
Memory is the peak of the process minus the matrix itself.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
import ratios

from stillvec.evaluation.analogy import Analogy
from stillvec.heads.lookup import Lookup
from stillvec.vectors import WordVectors

ROWS, COLUMNS = 1024, 8192  # one block of the product: 32 MB


def peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", required=True, type=Path)
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--form", nargs="+", default=["3cosadd", "3cosmul", "direction"])
    options = parser.parse_args()
    items = Analogy().read(options.questions)
    words = dict.fromkeys(word.lower() for question in items.texts for word in question)
    words |= dict.fromkeys(f"filler{number}" for number in range(options.words))
    table = np.random.default_rng(0).standard_normal((options.words, options.dim), np.float32)
    vectors = WordVectors([*words][: options.words], table)
    _ = vectors.vocabulary.index
    before = peak_memory()
    for forms in [(form,) for form in options.form] + [tuple(options.form)][: len(options.form) - 1]:
        start = time.perf_counter()
        answers = Analogy(None, forms).answer(Lookup(vectors), items)
        ours = time.perf_counter() - start
        memory = peak_memory() - before
        print(f"{', '.join(forms)}: {ours:.1f} s, {answers.covered.sum():,} questions, {memory:.0f} MiB more")
        if forms == (options.form[0],):
            product = time_bare_product(table, len(items))
            print(f"bare product: {product:.1f} s")
        print(f"  ratio {product / ours:.2f}")
        ratios.record(
            f"analogies by {', '.join(forms)}", product / ours, f"{ours:.1f} s", f"bare product {product:.1f} s"
        )


def time_bare_product(table: np.ndarray, questions: int) -> float:
    targets = table[np.random.default_rng(1).integers(0, len(table), questions)]
    start = time.perf_counter()
    for first in range(0, len(table), COLUMNS):
        for question in range(0, questions, ROWS):
            targets[question : question + ROWS] @ table[first : first + COLUMNS].T
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
