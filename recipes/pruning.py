"""Tables of docs/papers/18-pruning.md: pruned vectors, their masks and ranks, a pruned teacher (Gordon et al. 2020).

    stillvec run recipes/tuples.toml        (see there for what it needs)
    STILLVEC_DATA=... python recipes/pruning.py scores|tuning|values|teacher

`scores`: similarity against sparsity. `tuning`: retrofitting instead of fine-tuning, with the evaluated pairs
taken out of the lexicon; pruned before it with the zeros kept, the zeros free again (information deletion), or pruned
after. `values`: what a step changes in masks and ranks. `teacher`: MiniLM with pruned matrices, distilled without a
corpus (`stillvec adapt`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scores import (
    argument_parser,
    data_folder,
    format_change,
    mean,
    print_header,
    print_row,
    score_similarity,
    split_cells,
)

import stillvec
from stillvec import WordVectors
from stillvec.analysis import compare_values
from stillvec.evaluation import mean_difference
from stillvec.refinement.graph import LexiconGraph, shares, sweep

HEADERS = {
    "pruning-scores": "| vectors | pruned by | 0% | 20% | 30% | 40% | 60% | 90% | 30%, change | 60%, change |",
    "pruning-tuning": "| vectors | | 0% | 30% | 60% | 90% |",
    "pruning-values": "| vectors | step | masks differ at 20% | 40% | 60% | 90% | ranks move | tenths | cosine |",
    "pruning-teacher": "| MiniLM pruned by | sparsity | bare: mean of 4 | change | templates: mean of 4 | change |",
}
FOLDER = Path("out/tuples")
SETS = ("skipgram-100", "minilm")
SPARSITIES = (0.0, 0.2, 0.3, 0.4, 0.6, 0.9)
SEEDS = range(3)
RATED = ("rg65", "ws353", "simlex999", "men3000")  # the words that a pruned teacher reads


def main() -> None:
    parser = argument_parser(__doc__)
    tables = {name.removeprefix("pruning-"): name for name in HEADERS}
    parser.add_argument("table", choices=[*tables])
    choice = parser.parse_args().table
    print_header(*split_cells(HEADERS[tables[choice]]))
    {"scores": print_scores, "tuning": print_tuning, "values": print_values, "teacher": print_teacher}[choice]()


def load_sets() -> Iterator[tuple[str, WordVectors]]:
    for name in SETS:
        yield name, stillvec.load(FOLDER / name)


def prune(vectors: WordVectors, sparsity: float, settings: str = "") -> WordVectors:
    return stillvec.refine(vectors, f"prune:sparsity={sparsity}{settings}")


def print_scores() -> None:
    kinds = {"magnitude": [""], "magnitude, per row": [",scope=row"]}
    kinds["chance, 3 seeds"] = [f",by=chance,seed={seed}" for seed in SEEDS]
    for name, vectors in load_sets():
        for label, settings in kinds.items():
            cells = [np.mean([_compute_mean(prune(vectors, share, text)) for text in settings]) for share in SPARSITIES]
            pairs = [(prune(vectors, share, settings[0]), vectors) for share in (0.3, 0.6)]
            changes = [format_change(mean_difference(*pair, data_folder())) for pair in pairs]
            print_row(name, label, *map(float, cells), *changes)


def print_tuning() -> None:
    data = data_folder()
    ppdb, rated = str(data / "lexicons" / "ppdb-xl.txt"), str(data / "similarity")
    lexicon = LexiconGraph((ppdb,), ("synonym",), without=(rated,))
    for name, vectors in load_sets():
        weights = shares(lexicon.over(vectors.vocabulary)) / 2  # as `retrofit` with alpha = beta = 1, read once
        home, moved = np.full(len(vectors), 0.5), np.flatnonzero(np.diff(weights.indptr))

        def tune(before: WordVectors, home: Any = home, weights: Any = weights, moved: Any = moved) -> WordVectors:
            return sweep(before, home, weights, moved, 10)

        makes: dict[str, Callable[[WordVectors, float], WordVectors]] = {
            "pruned, retrofitted, zeros kept": lambda v, share: _keep_zeros(prune(v, share), tune(prune(v, share))),
            "pruned, retrofitted (information deletion)": lambda v, share: tune(prune(v, share)),
            "retrofitted, then pruned": lambda v, share: prune(tune(v), share),
        }
        for label, make in makes.items():
            print_row(name, label, *(_compute_mean(make(vectors, share)) for share in (0.0, 0.3, 0.6, 0.9)))


def _keep_zeros(pruned: WordVectors, tuned: WordVectors) -> WordVectors:
    return tuned.with_matrix(np.where(pruned.matrix == 0, 0, tuned.matrix))


def print_values() -> None:
    lexicon = f"lexicon={data_folder() / 'lexicons' / 'ppdb-xl.txt'},without={data_folder() / 'similarity'}"
    steps = {
        "`quantize:to=int8`": "quantize:to=int8",
        "`retrofit:beta=0.1`": f"retrofit:beta=0.1,{lexicon}",
        "`retrofit:beta=1`": f"retrofit:beta=1,{lexicon}",
        "`center`": "center",
        "`all_but_the_top`": "all_but_the_top",
    }
    for name, vectors in load_sets():
        for label, step in steps.items():
            change = compare_values(vectors.matrix, stillvec.refine(vectors, step).matrix)
            masks = [f"{100 * change.pruned_differences[share]:.1f}" for share in (0.2, 0.4, 0.6, 0.9)]
            ranks = f"{100 * change.rank_movement:.1f} ± {100 * change.rank_spread:.1f}"
            tenths = f"{100 * change.movement_by_tenth[0]:.1f} to {100 * change.movement_by_tenth[-1]:.1f}"
            print_row(name, label, *masks, ranks, tenths, f"{change.mean_cosine:.3f}")
    chances = [f"{200 * share * (1 - share):.1f}" for share in (0.2, 0.4, 0.6, 0.9)]
    print_row("–", "chance", *chances, "33.3", "", "")


def print_teacher() -> None:
    """Every matrix of the encoder and the word embeddings, each by its own threshold; biases and norms stay."""
    kinds = {"magnitude": (0.2, 0.3, 0.4, 0.6), "chance": (0.3,)}
    with tempfile.TemporaryDirectory() as folder:
        dense = _distill_pruned(Path(folder) / "dense", "magnitude", 0.0)
        print_row("–", "0%", _compute_mean(dense["bare"], RATED), "", _compute_mean(dense["templates"], RATED), "")
        for kind, sparsities in kinds.items():
            for share in sparsities:
                spaces = _distill_pruned(Path(folder) / f"{kind}-{share}", kind, share)
                cells: list[Any] = []
                for name, space in spaces.items():
                    change = mean_difference(space, dense[name], data_folder(), RATED)
                    cells += [_compute_mean(space, RATED), format_change(change)]
                print_row(kind, f"{share:.0%}", *cells)


def _distill_pruned(folder: Path, kind: str, sparsity: float) -> dict[str, WordVectors]:
    stillvec.adapt("minilm", f"prune:sparsity={sparsity},by={kind}", out=folder)
    files = (data_folder() / "similarity" / f"{name}.tsv" for name in RATED)
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    words = dict.fromkeys(word.lower() for line in lines for word in line.split("\t")[:2])
    methods = "decontextualized:templates={},decontextualized"
    spaces = stillvec.distill_all(teacher=str(folder), method=methods, include_words=[*words])
    return dict(zip(("bare", "templates"), spaces.values(), strict=True))


def _compute_mean(vectors: WordVectors, only: tuple[str, ...] | None = None) -> float:
    return mean(score_similarity(vectors, only))


if __name__ == "__main__":
    main()
