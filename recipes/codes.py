"""Binary codes of words: similarity scores by the number of bits and the method, beside product codes of the same size.

    STILLVEC_DATA=... python recipes/codes.py VECTORS [--bits 64 128 256 512] [--seeds 3]

The first method was chosen on the development sets (RG-65, WordSim-353, SimLex-999).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scores import DEVELOPMENT, HELD_OUT, argument_parser, print_header, print_row, score_similarity, split_cells

from stillvec import WordVectors, load, refine

HEADERS = {"codes": "| vectors | bytes per word | mean of 8 | kept | development | held out |"}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--bits", type=int, nargs="+", default=[64, 128, 256, 512])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    vectors = load(options.vectors)
    print_header(*split_cells(HEADERS["codes"]))
    whole = average(vectors)
    show("floats", 4 * vectors.dim, whole, whole)
    for length in options.bits:
        for by in ("itq", "rotation", "planes"):
            rows = [
                average(refine(vectors, f"bits:length={length},by={by},seed={seed}")) for seed in range(options.seeds)
            ]
            show(f"`bits:length={length},by={by}`", length // 8, np.mean(rows, axis=0), whole)
        if length <= 256:
            steps = [f"pca:dim={min(128, vectors.dim)}", f"quantize:to=pq,parts={length // 8}"]
            show(f"`{'`, `'.join(steps)}`", length // 8, average(refine(vectors, *steps)), whole)


def average(vectors: WordVectors) -> np.ndarray:
    scores = score_similarity(vectors)
    groups = ([*scores.values()], [scores[name] for name in DEVELOPMENT], [scores[name] for name in HELD_OUT])
    return np.array([*map(np.mean, groups)])


def show(name: str, n_bytes: int, means: np.ndarray, whole: np.ndarray) -> None:
    print_row(name, f"{n_bytes:,}", means[0], f"{means[0] / whole[0]:.0%}", *means[1:])


if __name__ == "__main__":
    main()
