"""Similarity orders before alignment (Vulić et al. 2020): MRR for each pair of alphas, as a heat map.

    python recipes/orders.py A B [--dictionary PAIRS] [--seeds 1000] [--tests 1000] [--rounds 0] [--out out/orders.svg]

A dictionary has a word of A and a word of B per line. By default, words with identical spelling are the pairs: two
spaces of one language. Every pair is randomly assigned to the seeds or the tests; ranks are by cosine among all words
of B. A script because it splits the dictionary, and for the figure; one alignment is `stillvec combine --method align`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scores import argument_parser, save_figure

import stillvec
from stillvec import WordVectors
from stillvec.combination.align import Align
from stillvec.numerics import unit_rows

ALPHAS = (-0.5, -0.25, -0.15, 0.0, 0.15, 0.25, 0.5)  # the paper's


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("spaces", nargs=2, metavar=("A", "B"))
    parser.add_argument("--dictionary", type=Path)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/orders.svg"))
    options = parser.parse_args()
    first, second = (stillvec.load(path) for path in options.spaces)
    left, right = Align(options.dictionary).pairs(first, second)
    order = np.random.default_rng(0).permutation(len(left))
    seeds, tests = order[: options.seeds], order[options.seeds : options.seeds + options.tests]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "seeds.txt"
        file.write_text("".join(f"{first.words[left[i]]} {second.words[right[i]]}\n" for i in seeds), encoding="utf-8")
        table = np.array(
            [
                [_mrr(Align(file, alphas=(a, b), rounds=options.rounds), (first, second), left[tests], right[tests])
                 for b in ALPHAS]
                for a in ALPHAS
            ]
        )  # fmt: skip
    print(f"MRR x 100 of {len(tests):,} words; rows: alpha of {options.spaces[0]}, columns: of {options.spaces[1]}")
    print("        " + "".join(f"{alpha:>7}" for alpha in ALPHAS))
    for alpha, row in zip(ALPHAS, table, strict=True):
        print(f"{alpha:>7} " + "".join(f"{100 * value:7.1f}" for value in row))
    draw(options.out, table, [Path(path).stem for path in options.spaces])


def _mrr(method: Align, pair: tuple[WordVectors, WordVectors], left: np.ndarray, right: np.ndarray) -> float:
    x, z = method.fit(*pair)
    cosines = unit_rows(x.rows(left)) @ unit_rows(z.rows(np.arange(len(pair[1])))).T  # (n, V)
    true = cosines[np.arange(len(right)), right]
    return float((1 / (1 + (cosines > true[:, None]).sum(1))).mean())


def draw(file: Path, table: np.ndarray, names: list[str]) -> None:
    figure = Figure(figsize=(6, 5.4), dpi=160, layout="constrained")
    axes = figure.subplots()
    axes.imshow(table, cmap="Blues", vmin=max(0.0, float(table.min()) - 0.15))
    middle = (float(table.min()) + float(table.max())) / 2
    for row, values in enumerate(table):
        for column, value in enumerate(values):
            ink = "white" if value > middle else "#222222"
            axes.text(column, row, f"{100 * value:.0f}", ha="center", va="center", color=ink, fontsize=10)
    ticks = [f"{alpha:+g}" if alpha else "0" for alpha in ALPHAS]
    axes.set_xticks(range(len(ALPHAS)), ticks)
    axes.set_yticks(range(len(ALPHAS)), ticks)
    axes.tick_params(length=0)
    axes.set_ylabel(f"alpha of {names[0]}")
    axes.set_xlabel(f"alpha of {names[1]}")
    axes.set_title("MRR x 100 after alignment, by similarity order", loc="left", fontsize=11)
    axes.spines[:].set_visible(False)
    save_figure(figure, file)


if __name__ == "__main__":
    main()
