"""`auto` at full size beside its parts, and teachers joined into one space: tables from results of `distill`.

    stillvec distill CORPORA --teacher DIR --method METHODS --min-count 2 --no-statistics --out out/teachers/NAME
    STILLVEC_DATA=... python recipes/joint_teachers.py parts|joint NAME=out/teachers/NAME ...

METHODS is `auto,auto:window_weight=1,aggregate:layer=best,decontextualized,additive,whitened_window`. `joint` scales
rows to unit length, weights the first teacher by 1 and each other by the weight in the table, and keeps 300 principal
components, as `--teacher A,B` does with 0.5.

    python recipes/joint_teachers.py search NAME=out/teachers/MPNet/auto NAME=out/teachers/MPNet/dictionary ...

`search` joins any sets of the same words: rows are centred and scaled to unit length, and the weights of all sets but
the first are chosen one after another, as long as the development mean rises. A word that a set says nothing of, as
glosses of a word without one, gets there what ridge regression predicts from the sets that know all words. A script
because it tries the weights.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scores import (
    DEVELOPMENT,
    argument_parser,
    data_folder,
    mean,
    print_header,
    print_row,
    score_similarity,
    split_cells,
)

import stillvec
from stillvec import WordVectors
from stillvec.combination.svd import Svd
from stillvec.evaluation.similarity import Similarity
from stillvec.numerics import spearman, unit_rows
from stillvec.refinement.pca import Pca

PARTS = {
    "`auto`": "auto",
    "`auto`, W": "auto-2",
    "`aggregate`": "aggregate",
    "`decontextualized`": "decontextualized",
    "`additive`": "additive",
    "`whitened_window`": "whitened_window",
}
JOINT = [("MPNet", "MiniLM"), ("MPNet", "granite"), ("MPNet", "MiniLM", "granite"), ("MPNet", "EmbeddingGemma")]
WEIGHTS = (0.5, 0.7, 1.0)
GRID = (0.0, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4)
LEAST_GAIN = 0.05  # of the development mean, for a change of a weight
RIDGE = 0.1  # of the mean squared length of a column
DIMS = (300, 450, 600, 1200)  # principal components of the last weighting
HEADERS = {
    "teachers-parts": "| teacher | `auto` | `auto`, W | `aggregate` | `decontextualized` | `additive` | `whitened_window` | same start, `auto` | same start, W |",  # noqa: E501
    "teachers-joint": "| teachers | weight | dev | 8 | SimLex | SimVerb | RareWord | MEN |",
    "teachers-search": "| sets and weights | dev | 8 | SimLex | SimVerb | RareWord | MEN |",
}
COLUMNS = ("simlex999", "simverb3500", "rareword", "men3000")


def share_start(vectors: WordVectors) -> float:
    """The share of the ten nearest words that begin with the same four letters, x 100."""
    report = stillvec.evaluate(vectors, None, ["neighbours"], resamples=0)
    return next(100 * score.value for score in report.scores if score.metric == "same-start")


def print_parts(folders: dict[str, Path]) -> None:
    print_header(*split_cells(HEADERS["teachers-parts"]))
    for name, folder in folders.items():
        means = [mean(score_similarity(stillvec.load(folder / part))) for part in PARTS.values()]
        starts = [share_start(stillvec.load(folder / part)) for part in ("auto", "auto-2")]
        print_row(name, *means, *starts)


def print_joint(folders: dict[str, Path]) -> None:
    sets = {name: stillvec.load(folder / "auto") for name, folder in folders.items()}
    print_header(*split_cells(HEADERS["teachers-joint"]))
    for names in JOINT:
        for weight in WEIGHTS:
            join = Svd(dim=300, weights=(1.0, *(weight,) * (len(names) - 1)))
            scores = score_similarity(join(*(sets[name] for name in names)))
            others = (scores[each] for each in COLUMNS)
            print_row(" + ".join(names), str(weight), mean(scores, DEVELOPMENT), mean(scores), *others)


class JointSpace:
    """Sets of the same words, rows of length one; any weighting is scored on the pairs of the datasets alone."""

    def __init__(self, sets: dict[str, WordVectors]) -> None:
        self.vocabulary = next(iter(sets.values())).vocabulary
        if any(each.vocabulary.words != self.vocabulary.words for each in sets.values()):
            raise SystemExit("Expected sets of the same words in the same order.")
        self.names = (*sets,)
        self.matrices = fill_rows([direct_rows(each) for each in sets.values()])
        self.pairs: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}  # (3, S, n): products; ratings
        for path in sorted((data_folder() / "similarity").glob("*.tsv")):
            items = Similarity().read(path)
            found = [[self.vocabulary.row(word) for word in pair] for pair in items.texts]
            known = np.array([None not in pair for pair in found])
            left, right = np.array([pair for pair in found if None not in pair]).T
            sides = ((left, right), (left, left), (right, right))
            products = [[(rows[one] * rows[other]).sum(1) for rows in self.matrices] for one, other in sides]
            self.pairs[path.stem] = (np.array(products, np.float64), items.gold[known])

    def score(self, weights: tuple[float, ...]) -> dict[str, float]:
        """Spearman's rho x 100 by dataset of the weighted sets side by side."""
        scores = {}
        for name, (products, ratings) in self.pairs.items():
            between, left, right = np.square(weights) @ products
            scores[name] = 100 * float(spearman((between / np.sqrt(left * right))[None], ratings[None])[0])
        return scores

    def join(self, weights: tuple[float, ...]) -> WordVectors:
        """The weighted sets side by side."""
        chosen = [weight * rows for weight, rows in zip(weights, self.matrices, strict=True) if weight]
        return WordVectors(self.vocabulary, np.hstack(chosen))


def direct_rows(vectors: WordVectors) -> NDArray[np.float32]:
    """Rows centred and scaled to length one; zero for a row at the mean, which says nothing."""
    rows = unit_rows(np.asarray(vectors.matrix, np.float32))
    rows = rows - rows.mean(0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 0.1 * np.median(lengths), unit_rows(rows), 0).astype(np.float32)


def fill_rows(matrices: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """Zero rows of a set as ridge regression predicts them from the sets without zero rows, of length one."""
    known = [np.asarray(np.abs(rows).sum(axis=1) > 0) for rows in matrices]
    complete = [rows for rows, mask in zip(matrices, known, strict=True) if mask.all()]
    filled = []
    for rows, mask in zip(matrices, known, strict=True):
        if complete and not mask.all():
            others = np.hstack(complete)
            moments = others[mask].T @ others[mask]
            penalty = RIDGE * np.trace(moments) / len(moments) * np.eye(len(moments))
            onto = np.linalg.solve(moments + penalty, others[mask].T @ rows[mask]).astype(np.float32)
            rows = np.where(mask[:, None], rows, unit_rows(others @ onto))
        filled.append(rows)
    return filled


def search_weights(space: JointSpace) -> None:
    """Print every weighting that was kept."""
    print_header(*split_cells(HEADERS["teachers-search"]))
    weights = (1.0, *(0.0 for _ in space.names[1:]))
    best = mean(space.score(weights), DEVELOPMENT)
    print_weights(space, weights)
    while True:
        trials = [
            (*weights[:at], weight, *weights[at + 1 :])
            for at in range(1, len(weights))
            for weight in GRID
            if weight != weights[at]
        ]
        means = [mean(space.score(trial), DEVELOPMENT) for trial in trials]
        if max(means) < best + LEAST_GAIN:
            break
        best, weights = max(means), trials[int(np.argmax(means))]
        print_weights(space, weights)
    joint = space.join(weights)
    for dim in sorted({min(dim, joint.dim) for dim in DIMS}):
        print_scores(f"the last, {dim} components", score_similarity(Pca(dim)(joint)))


def print_weights(space: JointSpace, weights: tuple[float, ...]) -> None:
    label = ", ".join(f"{name} {weight:g}" for name, weight in zip(space.names, weights, strict=True) if weight)
    print_scores(label, space.score(weights))


def print_scores(label: str, scores: dict[str, float]) -> None:
    print_row(label, mean(scores, DEVELOPMENT), mean(scores), *(scores[each] for each in COLUMNS))


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=("parts", "joint", "search"))
    parser.add_argument("teachers", nargs="+", metavar="NAME=FOLDER")
    options = parser.parse_args()
    folders = {name: Path(folder) for name, _, folder in (each.partition("=") for each in options.teachers)}
    if options.table == "search":
        search_weights(JointSpace({name: stillvec.load(folder) for name, folder in folders.items()}))
    else:
        {"parts": print_parts, "joint": print_joint}[options.table](folders)


if __name__ == "__main__":
    main()
