"""Natural alpha embeddings (Volpi & Malagò 2020): score against alpha, and alpha chosen on folds, with the real V.

    STILLVEC_DATA=... python recipes/texts.py --every 4
    stillvec train out/sizes/every-4.txt --dim 100 --method skipgram:epochs=5,glove:epochs=15 --min-count 30 \\
        --context-table --seed 1 --out out/alpha
    STILLVEC_DATA=... python recipes/alpha_curves.py out/alpha/glove out/alpha/skipgram [--words 2500]

The score is the mean of Spearman's rho x 100 over similarity datasets, on the pairs of the most frequent words. The
pairs of each dataset are split into three folds; alpha is chosen on two and scored on the third, over ten random
splits. A script because it splits pairs, and for the figure; one embedding is `stillvec refine --step natural_alpha`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import rankdata
from scores import DEVELOPMENT, HELD_OUT, argument_parser, data_folder, print_header, save_figure, split_cells

import stillvec
from stillvec import WordVectors
from stillvec.evaluation.similarity import Similarity
from stillvec.refinement.natural_alpha import NaturalAlpha

HEADERS = {"alpha": "| vectors | embedding | reference, metric | α chosen | held-out score | difference from U+V |"}
ALPHAS = (-10.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 10.0)  # the paper's range
FAMILIES = (("uniform", "identity"), ("unigram", "identity"), ("unigram", "fisher"), ("counts", "fisher"))
CONTROLS = {"centred": ("center",), "whitened": ("center", "similarity_order:alpha=-0.5")}
N_FOLDS, N_SPLITS, N_RESAMPLES, MIN_PAIRS = 3, 10, 300, 50

Pairs = dict[str, tuple[list[str], list[str], np.ndarray]]  # by dataset: words, words, ratings


def read_pairs(vectors: WordVectors) -> Pairs:
    task, pairs = Similarity(), {}
    for path in task.find(data_folder()):
        if path.stem in (*DEVELOPMENT, *HELD_OUT):
            items = task.read(path)
            known = [n for n, words in enumerate(items.texts) if all(word in vectors for word in words)]
            first, second = ([items.texts[n][side] for n in known] for side in (0, 1))
            if len(known) >= MIN_PAIRS:
                pairs[path.stem] = first, second, np.asarray(items.gold)[known]
    return pairs


def read_cosines(vectors: WordVectors, pairs: Pairs) -> list[np.ndarray]:
    return [np.asarray(vectors.similarity(first, second)) for first, second, _ in pairs.values()]


class Folds:
    """The held-out score of candidates, of which one is chosen on the other folds."""

    def __init__(self, pairs: Pairs) -> None:
        self.ratings = [ratings for _, _, ratings in pairs.values()]
        random = np.random.default_rng(0)
        sizes = [len(ratings) for ratings in self.ratings]
        self.splits = [[random.permutation(size) % N_FOLDS for size in sizes] for _ in range(N_SPLITS)]
        self.weights = [random.multinomial(size, np.full(size, 1 / size), N_RESAMPLES) for size in sizes]  # (R, n)

    def score(self, candidates: list[list[np.ndarray]]) -> tuple[np.ndarray, list[int]]:
        """Scores (1 + R,) on all pairs and on bootstrap samples of them, and the candidates chosen."""
        totals, chosen = np.zeros(1 + N_RESAMPLES), []
        for split in self.splits:
            for fold in range(N_FOLDS):
                others = [part != fold for part in split]
                best = max(range(len(candidates)), key=lambda n: self.mean(candidates[n], others)[0])
                chosen.append(best)
                totals += self.mean(candidates[best], [part == fold for part in split], resampled=True)
        return totals / len(chosen), chosen

    def mean(self, cosines: list[np.ndarray], masks: list[np.ndarray], *, resampled: bool = False) -> np.ndarray:
        """The mean correlation of ranks over the datasets (1,) or (1 + R,); ranks are those of the whole fold."""
        values = []
        for cosine, rating, mask, weights in zip(cosines, self.ratings, masks, self.weights, strict=True):
            x, y = (rankdata(numbers[mask]) for numbers in (cosine, rating))
            ones = np.ones((1, len(x)))
            w = np.concatenate([ones, weights[:, mask]]) if resampled else ones
            w = w / w.sum(1, keepdims=True)
            dx, dy = (numbers - (w @ numbers)[:, None] for numbers in (x, y))
            values.append((w * dx * dy).sum(1) / np.sqrt((w * dx * dx).sum(1) * (w * dy * dy).sum(1)))
        return 100 * np.mean(values, axis=0)


def format_difference(scores: np.ndarray, base: np.ndarray) -> str:
    low, high = np.percentile((scores - base)[1:], [2.5, 97.5])
    return f"{scores[0] - base[0]:+.1f} [{low:.1f}, {high:.1f}]"


def print_row(name: str, label: str, family: str, alpha: str, scores: np.ndarray, base: np.ndarray) -> None:
    change = "" if scores is base else format_difference(scores, base)
    print(f"| {name} | {label} | {family} | {alpha} | {scores[0]:.1f} | {change} |", flush=True)


def evaluate(name: str, vectors: WordVectors, pairs: Pairs, notes: list[str]) -> dict[str, Any]:
    """Print the rows of these vectors, note the differences from whitening, and return the curves on all pairs."""
    assert vectors.contexts is not None, f"{name} has no context table"
    folds, whole = Folds(pairs), [np.ones(len(values[2]), bool) for values in pairs.values()]
    plain = {"U": vectors, "U+V": vectors.with_matrix(vectors.matrix + vectors.contexts.matrix)}
    plain |= {
        f"{label}, {control}": stillvec.refine(table, *steps)
        for control, steps in CONTROLS.items()
        for label, table in plain.items()
    }
    plain["V"] = vectors.contexts
    base = folds.score([read_cosines(plain["U+V"], pairs)])[0]
    white = folds.score([read_cosines(plain["U, whitened"], pairs)])[0]
    curves: dict[str, Any] = {}
    for label, table in plain.items():
        cosines = read_cosines(table, pairs)
        curves[label] = folds.mean(cosines, whole)[0]
        print_row(name, label, "", "", base if label == "U+V" else folds.score([cosines])[0], base)
    for plus in (False, True):
        for reference, metric in FAMILIES:
            given: Mapping[str, Any] = {"reference": reference, "metric": metric, "plus": plus}
            *bent, limit = (read_cosines(NaturalAlpha(a, **given)(vectors), pairs) for a in (*ALPHAS, "limit"))
            label, family = "U+V" if plus else "U", f"{reference}, {metric}"
            scores, chosen = folds.score(bent)
            counts = np.bincount(chosen, minlength=len(ALPHAS))
            most = f"{ALPHAS[counts.argmax()]:g} ({counts.max()} of {len(chosen)})"
            print_row(name, f"E, {label}", family, most, scores, base)
            at_limit = folds.score([limit])[0]
            print_row(name, f"LE, {label}", family, "limit", at_limit, base)
            notes.append(f"{name}: LE, {label}, {family} from U, whitened: {format_difference(at_limit, white)}")
            curves[f"{label}: {family}"] = (
                [folds.mean(cosines, whole)[0] for cosines in bent],
                folds.mean(limit, whole)[0],
            )
    return curves


def draw(path: Path, curves: Mapping[str, Mapping[str, Any]]) -> None:
    figure = Figure(figsize=(2 + 4.5 * len(curves), 4.4), dpi=160, layout="constrained")
    for axes, (name, lines) in zip(
        np.atleast_1d(figure.subplots(1, len(curves), sharey=True)), curves.items(), strict=True
    ):
        families = {key: value for key, value in lines.items() if isinstance(value, tuple)}
        for number, (label, (values, limit)) in enumerate(families.items()):
            style = {"color": f"C{number % len(FAMILIES)}", "linestyle": "-" if label.startswith("U+V") else "--"}
            axes.plot(ALPHAS, values, marker="o", markersize=3, label=label, **style)
            axes.plot([ALPHAS[0] - 1.5], [limit], marker="<", **style)
        for label, style in (("U", ":"), ("U+V", "-.")):
            axes.axhline(lines[label], color="grey", linestyle=style, linewidth=1, label=label)
        axes.set_title(name, loc="left", fontsize=11)
        axes.set_xlabel("α (left, <: the limit -∞)")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("mean Spearman x 100, all pairs")
    handles = figure.axes[-1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right upper", fontsize=8, frameon=False, handlelength=3)
    save_figure(figure, path)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="vectors with a context table")
    parser.add_argument("--words", type=int, default=2500, help="the most frequent; time is quadratic in their number")
    parser.add_argument("--out", type=Path, default=Path("out/alpha/alpha.svg"))
    options = parser.parse_args()
    sets = {folder.name: stillvec.load(folder) for folder in options.folders}
    sets = {name: vectors.subset(vectors.words[: options.words]) for name, vectors in sets.items()}
    pairs = {name: read_pairs(vectors) for name, vectors in sets.items()}
    for name, known in pairs.items():
        counts = ", ".join(f"{dataset} {len(ratings):,}" for dataset, (_, _, ratings) in known.items())
        print(f"{name}: pairs of the {len(sets[name]):,} most frequent words: {counts}", flush=True)
    print_header(*split_cells(HEADERS["alpha"]))
    notes: list[str] = []
    curves = {name: evaluate(name, vectors, pairs[name], notes) for name, vectors in sets.items()}
    print("", *notes, sep="\n")
    draw(options.out, curves)


if __name__ == "__main__":
    main()
