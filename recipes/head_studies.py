"""What the studies of heads share: their arguments, rows that are written as they come, and intervals over items."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scores import print_header, split_cells, write_json

from stillvec.heads.labelled_data import LabelledData


class Study(NamedTuple):
    run: Callable[[argparse.Namespace], None]  # writes rows
    show: Callable[[list[dict[str, Any]]], None]  # prints their table
    vectors: str | None = None  # how its vectors are given, if there are several


def add_studies(commands: Any, studies: Mapping[str, Study], headers: Mapping[str, str]) -> None:
    """A command for each study, and `show`."""
    for name, study in studies.items():
        command = commands.add_parser(name)
        if study.vectors is None:
            command.add_argument("vectors")
        else:
            command.add_argument("vectors", nargs="+", metavar=study.vectors)
        command.add_argument("--out", required=True, type=Path)
        command.add_argument("--only", help="names of heads, joined by semicolons")
        command.add_argument("--on", help="one of the datasets")
        command.add_argument("--seeds", type=int, default=3)
        command.add_argument("--first-seed", type=int, default=0)
        command.add_argument("--epochs", type=int)
        command.add_argument("--epsilon", type=float, help="of training with perturbed words, else selected")
        command.add_argument("--most", type=int, default=0, help="training items, for a trial")
        command.add_argument("--device", default="auto")
        command.set_defaults(run=study.run)

    def show(options: argparse.Namespace) -> None:
        rows = [row for file in options.files for row in json.loads(file.read_text("utf-8"))]
        print_header(*split_cells(headers[options.study]))
        studies[options.study].show(rows)

    command = commands.add_parser("show")
    command.add_argument("study", choices=[*studies])
    command.add_argument("files", nargs="+", type=Path)
    command.set_defaults(run=show)


def list_seeds(options: argparse.Namespace) -> range:
    return range(options.first_seed, options.first_seed + options.seeds)


class Rows:
    """The rows of a study, written as they come."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, list[dict[str, Any]]()

    def add(self, **row: Any) -> None:
        self.rows.append(row)
        write_json(self.path, self.rows)
        print({key: value for key, value in row.items() if not isinstance(value, list | dict)}, flush=True)


def choose(options: argparse.Namespace, names: Iterable[str]) -> list[str]:
    wanted = options.only.split(";") if options.only else None
    return [name for name in names if wanted is None or name in wanted]


def spell(head: str, options: argparse.Namespace, settings: str = "") -> str:
    """The head with its settings."""
    given = [settings, f"epochs={options.epochs}" if options.epochs else ""]
    return f"{head}:{','.join(filter(None, given))}" if any(given) else head


def pairs_of(data: LabelledData, most: int) -> list[tuple[Any, str]]:
    chosen = data.train[:: max(1, len(data.train) // most)]
    return [(data.items[row], data.labels[row][0]) for row in chosen.tolist()]


def bootstrap(measure: Callable[[NDArray[np.int64]], NDArray[Any]], n: int, n_draws: int = 1000) -> list[str]:
    """The values of `measure` on all items with the 95% interval over items drawn again, x 100."""
    random = np.random.default_rng(0)
    drawn = np.stack([measure(random.integers(0, n, n)) for _ in range(n_draws)])
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    whole = measure(np.arange(n))
    return [f"{100 * v:.1f} [{100 * a:.1f}, {100 * b:.1f}]" for v, a, b in zip(whole, low, high, strict=True)]


def group(rows: list[dict[str, Any]], key: Callable[[dict[str, Any]], Any]) -> dict[Any, list[dict[str, Any]]]:
    parts: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        if (name := key(row)) is not None:
            parts.setdefault(name, []).append(row)
    return parts
