"""Geometric meta-embeddings (Jawanpuria et al. 2020) for different ridges C: a figure and its values.

    STILLVEC_DATA=... python recipes/geometric.py A B [--out out/geometric.svg]

The mean of Spearman's rho over the similarity datasets, on the common words: of each space alone, their average and
concatenation, rotations only, and the latent spaces for C from 1e-2 to 1e4 times its natural scale, the median of the
products of the eigenvalues of both sides. A script because the values of C depend on the spaces, and for the figure.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scores import argument_parser, mean, save_figure, score_similarity

import stillvec
from stillvec import WordVectors
from stillvec.combination.average import Average
from stillvec.combination.concat import Concat
from stillvec.combination.geometric import Geometric, Spectra, ridge_from, sum_shared
from stillvec.combination.joint_space import join_spaces

COLOURS = ("#2a6ebb", "#d1495b")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("spaces", nargs=2, metavar=("A", "B"))
    parser.add_argument("--out", type=Path, default=Path("out/geometric.svg"))
    options = parser.parse_args()
    pair = [stillvec.load(path) for path in options.spaces]
    shared = sum_shared(join_spaces(pair, "intersection"), [np.eye(pair[0].dim)], 1, True)
    scale, chosen = Spectra(shared).scale(), ridge_from(shared)
    kinds = {"average": Average(words="intersection"), "concatenation": Concat(words="intersection")}
    lines = {name: _score(method(*pair)) for name, method in kinds.items()}
    lines["rotations only"] = _score(Geometric(metric=False, words="intersection")(*pair))
    common = [word for word in pair[0].words if word in pair[1]]
    for path, space in zip(options.spaces, pair, strict=True):
        lines[Path(path).stem] = _score(space.subset(common))
    ridges = scale * 10.0 ** np.arange(-2, 4.01, 0.5)
    curves = {
        output: [_score(Geometric(output, ridge=float(c), words="intersection")(*pair)) for c in ridges]
        for output in ("average", "concat")
    }
    for name, value in lines.items():
        print(f"{name:<16} {value:.1f}")
    for output, values in curves.items():
        shown = " ".join(f"{value:.1f}" for value in values)
        best = float(ridges[int(np.argmax(values))])
        print(f"geometric, {output}: {shown}; best at C = {best:.3g}, auto chooses {chosen:.3g}")
    _draw(options.out, ridges, curves, lines, chosen)


def _score(vectors: WordVectors) -> float:
    return mean({name: value for name, value in score_similarity(vectors).items() if np.isfinite(value)})


def _draw(
    file: Path, ridges: np.ndarray, curves: dict[str, list[float]], lines: dict[str, float], chosen: float
) -> None:
    figure = Figure(figsize=(8, 4.6), dpi=160, layout="constrained")
    axes = figure.subplots()
    for colour, (output, values) in zip(COLOURS, curves.items(), strict=True):
        axes.plot(ridges, values, color=colour, marker="o", markersize=4, label=f"geometric, {output}")
    for name, value in lines.items():
        axes.axhline(value, color="#888888", linewidth=0.8, linestyle=":")
        axes.annotate(name, (ridges[-1], value), (6, 2), textcoords="offset points", fontsize=9)
    axes.axvline(chosen, color="#888888", linewidth=0.8)
    axes.annotate("auto", (chosen, 1), (3, -10), xycoords=("data", "axes fraction"), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_xlabel("C")
    axes.set_title("Mean Spearman's rho x 100 over the similarity datasets", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower center", fontsize=9)
    save_figure(figure, file)


if __name__ == "__main__":
    main()
