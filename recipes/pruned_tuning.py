"""Tables of docs/papers/18-pruning.md: MiniLM pruned before and after it is tuned on questions (Gordon et al. 2020).

    STILLVEC_DATA=... python recipes/pruned_tuning.py [--dataset trec] [--items 2000] [--epochs 3] [--scores FILE]

Each row is a teacher of `stillvec adapt`: pruned and then tuned, with the zeros kept, or tuned and then pruned.
Accuracy is on the test part; a change is from the model tuned without pruning, with a bootstrap interval over items.
The second table compares the tuned model with MiniLM: how many of the weights that pruning would remove differ, and how
far weights move in the order of magnitudes. Answers are appended to the file of `--scores`, so that a run that was
interrupted can be continued. A script because no command scores a pruned classifier.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from scores import argument_parser, data_folder, print_header, print_row, split_cells
from sememes import predict

import stillvec
from stillvec.analysis import compare_teachers
from stillvec.heads.dataset_files import read_labelled

HEADERS = {
    "pruned-tuning": "| MiniLM | 0% | 30% | 60% | 30%, change | 60%, change |",
    "pruned-tuning-masks": "| MiniLM against | masks differ at 20% | 40% | 60% | 90% | ranks move |",
}
SPARSITIES = (0.3, 0.6)
MASKS = (0.2, 0.4, 0.6, 0.9)
_DRAWS = 2000


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--dataset", default="trec")
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--scores", type=Path, default=Path("out/pruned-tuning.jsonl"))
    options = parser.parse_args()
    tune = f"tune:on={data_folder() / 'classification' / options.dataset},most={options.items},epochs={options.epochs}"
    with tempfile.TemporaryDirectory() as folder:
        dense = Path(folder) / "dense"
        right = {"dense": answer("dense", (tune,), "minilm", dense, options)}
        kinds = {
            "pruned, tuned, zeros kept": lambda share: ("minilm", f"prune:sparsity={share}", tune),
            "tuned, then pruned": lambda share: (str(dense), f"prune:sparsity={share}"),
        }
        for label, make in kinds.items():
            for share in SPARSITIES:
                teacher, *steps = make(share)
                key = f"{label} {share}"
                right[key] = answer(key, tuple(steps), teacher, Path(folder) / "pruned", options)
        print_header(*split_cells(HEADERS["pruned-tuning"]))
        for label in kinds:
            rows = [right[f"{label} {share}"] for share in SPARSITIES]
            changes = [describe_change(row, right["dense"]) for row in rows]
            print_row(label, *(100 * float(row.mean()) for row in (right["dense"], *rows)), *changes)
        print()
        print_header(*split_cells(HEADERS["pruned-tuning-masks"]))
        change = compare_teachers(str(dense), "minilm")
        weights = [matrix.values.n_rows * matrix.values.n_columns for matrix in change.matrices]
        differences = [[matrix.values.pruned_differences[share] for matrix in change.matrices] for share in MASKS]
        masks = [100 * float(np.average(values, weights=weights)) for values in differences]
        print_row("MiniLM, tuned", *masks, 100 * change.rank_movement)
        print_row("chance", *(200 * share * (1 - share) for share in MASKS), 100 / 3)


def answer(key: str, steps: tuple[str, ...], teacher: str, out: Path, options: argparse.Namespace) -> np.ndarray:
    """Which test items the model is right on (n,)."""
    known = read_scores(options.scores)
    if key in known and key != "dense":  # whose folder the others need
        return known[key]
    model = stillvec.adapt(teacher, *steps, out=out, force=True)
    items = [*read_labelled(data_folder() / "classification" / f"{options.dataset}.test.txt")]
    said = predict(model, [text for _, text in items])
    right = np.array([label == name for (label, _), name in zip(items, said, strict=True)])
    options.scores.parent.mkdir(parents=True, exist_ok=True)
    with options.scores.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"key": key, "right": right.astype(int).tolist()}) + "\n")
    return right


def read_scores(path: Path) -> dict[str, np.ndarray]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return {row["key"]: np.array(row["right"], bool) for row in map(json.loads, lines)}


def describe_change(one: np.ndarray, other: np.ndarray) -> str:
    """The difference of accuracy x 100, with a 95% interval."""
    gains = one.astype(float) - other.astype(float)
    drawn = np.random.default_rng(0).integers(len(gains), size=(_DRAWS, len(gains)))
    low, high = np.percentile(100 * gains[drawn].mean(1), (2.5, 97.5))
    return f"{100 * gains.mean():+.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
