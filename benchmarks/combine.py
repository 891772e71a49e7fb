"""Time and memory of combining two random spaces, 400,000 x 300 and 400,000 x 100, compared with plain NumPy.

    python benchmarks/combine.py [--words 400000] [--dims 300 100] [--methods svd gcca geometric align]

Three quarters of the words are in both spaces, and these are combined. Plain NumPy does the minimum, on whole matrices
in single precision whose rows are already aligned: no union, no missing words, no ridge chosen from the data. Each runs
in its own process; memory is the peak of the process minus the two spaces.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ratios

from stillvec.combination import COMBINERS
from stillvec.vectors import WordVectors

Table = Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--dims", type=int, nargs=2, default=(300, 100))
    parser.add_argument("--methods", nargs="+", default=["concat", "average", "svd", "gcca", "geometric", "align"])
    options = parser.parse_args()
    print(f"two spaces of {options.words:,} words, {options.dims[0]} and {options.dims[1]} dimensions")
    print(f"{'method':<10} {'s':>7} {'numpy s':>8} {'ratio':>6} {'GiB':>6} {'numpy GiB':>10} {'ratio':>6}")
    context = multiprocessing.get_context("spawn")
    for name in options.methods:
        results = []
        for plain in (False, True):
            here, there = context.Pipe()
            child = context.Process(target=_measure, args=(name, plain, options.words, options.dims, there))
            child.start()
            results.append(here.recv())
            child.join()
        (seconds, memory), (numpy_seconds, numpy_memory) = results
        times = seconds / numpy_seconds, memory / max(numpy_memory, 1e-9)
        print(
            f"{name:<10} {seconds:7.1f} {numpy_seconds:8.1f} {times[0]:6.2f} {memory:6.2f} {numpy_memory:10.2f} "
            f"{times[1]:6.2f}",
            flush=True,
        )
        numpy = f"plain numpy {numpy_seconds:.2f} s"
        ratios.record(f"combining by {name}", numpy_seconds / seconds, f"{seconds:.2f} s", numpy)


def _measure(name: str, plain: bool, words: int, dims: tuple[int, int], answer: Any) -> None:
    """Send the seconds, and the additional peak memory in GiB."""
    random = np.random.default_rng(0)
    shift = words // 4
    spaces = []
    for number, dim in enumerate(dims):
        names = [f"w{row}" for row in range(number * shift, number * shift + words)]
        spaces.append(WordVectors(names, random.standard_normal((words, dim), np.float32)))
        _ = spaces[-1].vocabulary.index
    method = COMBINERS[name](words="intersection")  # type: ignore[call-arg]
    before, start = _peak(), time.perf_counter()
    if plain:
        _PLAIN[name](spaces[0].matrix[shift:], spaces[1].matrix[:-shift])
    else:
        method(*spaces)
    answer.send((time.perf_counter() - start, _peak() - before))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _unit(table: Table) -> Table:
    return table / np.linalg.norm(table, axis=1, keepdims=True)


def _concat(x: Table, z: Table) -> Table:
    return np.hstack([_unit(x), _unit(z)])


def _average(x: Table, z: Table) -> Table:
    return (_unit(x) + np.pad(_unit(z), ((0, 0), (0, x.shape[1] - z.shape[1])))) / 2


def _svd(x: Table, z: Table) -> Table:
    table = _concat(x, z)
    return table @ np.linalg.eigh(table.T @ table)[1][:, -x.shape[1] :]


def _gcca(x: Table, z: Table) -> Table:
    white = []
    for table in (_unit(x), _unit(z)):
        values, axes = np.linalg.eigh(table.T @ table)
        white.append(table @ (axes / np.sqrt(values)) @ axes.T)
    table = np.hstack(white)
    return table @ np.linalg.eigh(table.T @ table)[1][:, -x.shape[1] :]


def _geometric(x: Table, z: Table) -> Table:
    x, z = _unit(x), _unit(z)
    (a, q), (b, r) = (np.linalg.eigh(table.T @ table) for table in (x, z))
    u, s, vt = np.linalg.svd(q @ ((q.T @ (x.T @ z) @ r) / (np.outer(a, b) + 1e4)) @ r.T, full_matrices=False)
    return (_unit(x @ (u * np.sqrt(s))) + _unit(z @ (vt.T * np.sqrt(s)))) / 2


def _align(x: Table, z: Table) -> Table:
    x, z = _unit(_unit(x) - _unit(x).mean(0)), _unit(_unit(z) - _unit(z).mean(0))
    z = np.pad(z, ((0, 0), (0, x.shape[1] - z.shape[1])))
    sample = x[:10_000], z[:10_000]
    for _ in range(3):  # two rounds of mutual nearest neighbours
        u, _, vt = np.linalg.svd(z.T @ x)
        cosines = sample[0] @ (sample[1] @ u @ vt).T
        near = [np.partition(rows, -10, axis=1)[:, -10:].mean(1) for rows in (cosines, cosines.T)]
        scores = 2 * cosines - near[0][:, None] - near[1]
        scores.argmax(0), scores.argmax(1)
    return (x + z @ (u @ vt)) / 2


_PLAIN: dict[str, Callable[[Table, Table], Table]] = {
    "concat": _concat,
    "average": _average,
    "svd": _svd,
    "gcca": _gcca,
    "geometric": _geometric,
    "align": _align,
}

if __name__ == "__main__":
    main()
