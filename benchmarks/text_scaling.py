"""Accuracy of a plain `LogisticRegression()` on `TextVectorizer`, by how its rows are scaled.

    python benchmarks/text_scaling.py VECTORS... --development FILE... [--test FILE...] [--texts 1500]

A file has a label, a space or tab, and a text per line; `NAME.train.txt` is tested on `NAME.test.txt` beside it, any
other file is shuffled and halved. At most `--texts` texts train, and as many test. `x10` joins ten texts of one label,
as longer documents have means that are more alike. The scaling of `TextVectorizer` was chosen on the mean over the
development files; the test files only report it.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import argparse
import random
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import stillvec
from stillvec.numerics import unit_rows

Rows = NDArray[Any]
Labelled = list[tuple[str, str]]
Scale = Callable[[Rows, Rows], tuple[Rows, Rows]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", nargs="+", type=Path)
    parser.add_argument("--development", nargs="+", type=Path, default=[])
    parser.add_argument("--test", nargs="+", type=Path, default=[])
    parser.add_argument("--texts", type=int, default=1500)
    options = parser.parse_args()
    for kind in ("development", "test"):
        sets = _read_sets(getattr(options, kind), options.texts)
        if not sets:
            continue
        print(f"{kind}: {', '.join(sets)}")
        for path in options.vectors:
            vectors = stillvec.load(path)
            for name, scale in SCALINGS.items():
                scores, unfinished = zip(*(_score(vectors, scale, *parts) for parts in sets.values()), strict=True)
                row = " ".join(f"{score:.3f}" for score in scores)
                warned = f"; {sum(unfinished)} did not converge" if any(unfinished) else ""
                print(f"  {path.name:18} {name:12} mean {np.mean(scores):.3f}: {row}{warned}", flush=True)


def _score(vectors: stillvec.WordVectors, scale: Scale, train: Labelled, test: Labelled) -> tuple[float, bool]:
    labels, texts = zip(*train, strict=True)
    others, queries = zip(*test, strict=True)
    x, y = scale(vectors.encode(texts), vectors.encode(queries))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        accuracy = LogisticRegression().fit(x, labels).score(y, others)
    return float(accuracy), any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def _standardize(train: Rows, test: Rows) -> tuple[Rows, Rows]:
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)


def _unit(train: Rows, test: Rows) -> tuple[Rows, Rows]:
    return unit_rows(train), unit_rows(test)


def _center(length: float, *, unit: bool) -> Scale:
    def scale(train: Rows, test: Rows) -> tuple[Rows, Rows]:
        train, test = _unit(train, test) if unit else (train, test)
        mean = train.mean(axis=0)
        factor = length / np.sqrt(np.square(train - mean).sum(axis=1).mean())
        return (train - mean) * factor, (test - mean) * factor

    return scale


SCALINGS: dict[str, Scale] = {
    "none": lambda train, test: (train, test),
    "unit": _unit,
    "standardized": _standardize,
    **{f"mean {length}": _center(length, unit=False) for length in (1, 2, 4)},
    **{f"center {length}": _center(length, unit=True) for length in (1, 2, 3, 4)},  # 2: TextVectorizer
}


def _read_sets(files: Sequence[Path], n_texts: int) -> dict[str, tuple[Labelled, Labelled]]:
    sets: dict[str, tuple[Labelled, Labelled]] = {}
    for path in files:
        rows = _read(path)
        name, _, part = path.stem.partition(".")
        beside = path.with_name(f"{name}.test{path.suffix}")
        if part == "train" and beside.exists():
            sets[name] = rows[:n_texts], _read(beside)[:n_texts]
            continue
        sets[name] = rows[:n_texts], rows[n_texts : 2 * n_texts] if len(rows) >= 2 * n_texts else rows[n_texts:]
        longer = _join(rows, 10)
        sets[f"{name}x10"] = longer[: len(longer) // 2], longer[len(longer) // 2 :]
    return sets


def _read(path: Path) -> Labelled:
    lines = path.read_text("utf-8", "replace").splitlines()
    rows = [(label, text) for label, text in (line.split(None, 1) for line in lines if len(line.split(None, 1)) == 2)]
    random.Random(0).shuffle(rows)
    return rows


def _join(rows: Labelled, n_texts: int) -> Labelled:
    by_label: dict[str, list[str]] = {}
    for label, text in rows:
        by_label.setdefault(label, []).append(text)
    joined = [
        (label, " ".join(texts[first : first + n_texts]))
        for label, texts in by_label.items()
        for first in range(0, len(texts) - n_texts + 1, n_texts)
    ]
    random.Random(0).shuffle(joined)
    return joined


if __name__ == "__main__":
    main()
