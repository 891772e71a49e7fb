"""What fewer dimensions and smaller folders cost: scores and bytes of the same vectors, as a table.

    python recipes/small.py VECTORS --data DATA [--dimensions 256 128 64 32] [--kilobytes 2000 1000 700]

Cut: the first dimensions (`WordVectors.truncate`). Shrunk: the step `shrink`. Shared: whole rows shared by the words of
a cluster (k-means of directions, each word with its own length), in the bytes of the last size, for comparison.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scores import print_header, print_row, split_cells

from stillvec import WordVectors, evaluate, load, refine, save
from stillvec.numerics import kmeans, nearest_centres, unit_rows

HEADERS = {"small": "| vectors | folder | similarity | sentences |"}
TASKS = ["similarity", "sentences"]
SHARED_DIM = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--dimensions", type=int, nargs="*", default=[256, 128, 64, 32])
    parser.add_argument("--kilobytes", type=int, nargs="*", default=[2000, 1000, 700])
    options = parser.parse_args()
    vectors = load(options.vectors)
    print(f"{len(vectors):,} words\n")
    print_header(*split_cells(HEADERS["small"]))
    for name, small in make_rows(vectors, options.dimensions, options.kilobytes):
        scores = evaluate(small, tasks=TASKS, data=options.data).scores
        means = [
            100 * float(np.mean([score.value for score in scores if (score.task, score.metric) == (task, "spearman")]))
            for task in TASKS
        ]
        size = f"{measure_folder(small) / 1e6:.2f} MB" if not name.startswith("whole rows") else "as above"
        print_row(name, size, *means)


def make_rows(vectors: WordVectors, dimensions: list[int], kilobytes: list[int]) -> Iterator[tuple[str, WordVectors]]:
    yield f"all {vectors.dim} dimensions, {vectors.matrix.dtype.name}", vectors
    for dim in dimensions:
        yield f"the first {dim}", vectors.truncate(dim)
    yield "`quantize:to=int8`", refine(vectors, "quantize:to=int8")
    for size in kilobytes:
        small = refine(vectors, f"shrink:kilobytes={size}")
        parts = small.provenance["refined"][-1]["settings"]["parts"]
        yield f"`shrink:kilobytes={size}`: {small.dim} dimensions in {parts} parts", small
        n_rows = len(vectors) * (parts - 2) // (4 * SHARED_DIM) + 256  # the bytes of codes and centres
        yield f"whole rows shared: {n_rows:,} of {SHARED_DIM} dimensions", share_rows(vectors, n_rows)


def share_rows(vectors: WordVectors, n_rows: int) -> WordVectors:
    reduced = refine(vectors, f"pca:dim={SHARED_DIM}")
    units, random = unit_rows(reduced.matrix, np.float32), np.random.default_rng(0)
    start = units[np.sort(random.permutation(len(units))[:n_rows])]
    centres = unit_rows(kmeans(units, n_rows, random, centres=start, n_rounds=10).centres)
    lengths = np.linalg.norm(reduced.matrix, axis=1, keepdims=True)
    return reduced.with_matrix(centres[nearest_centres(units, centres)] * lengths)


def measure_folder(vectors: WordVectors) -> int:
    with tempfile.TemporaryDirectory() as folder:
        save(vectors, Path(folder) / "vectors")
        return sum(file.stat().st_size for file in (Path(folder) / "vectors").iterdir())


if __name__ == "__main__":
    main()
