"""What the principal components of vectors encode (Raunak et al. 2020): the tables of docs/papers/19.

    STILLVEC_DATA=... python recipes/components.py TABLE NAME=VECTORS ...

TABLE is curve (the first components, and from how many on the score is within a point of that of all), thirds, without
(the first components removed) or single (each component alone predicts the label of a text). Similarity is the mean of
Spearman's rho x 100 over the datasets, with the interval of its difference from all components. Texts (CR, SUBJ, TREC)
are means of words, classified by logistic regression; every fifth text is held out. A script because `stillvec analyze`
classifies texts by single components only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scores import argument_parser, data_folder, format_change, mean, print_header, print_row, split_cells

import stillvec
from stillvec import WordVectors
from stillvec.analysis import PrincipalSpace, probe, saturation
from stillvec.analysis.components import measure_accuracy, split_texts
from stillvec.evaluation import mean_difference
from stillvec.heads.dataset_files import read_labelled

HEADERS = {
    "components-curve": "| vectors | scores | 1/15 | 1/5 | 1/3 | 7/15 | 3/5 | 2/3 | 4/5 | all | saturated from |",
    "components-thirds": "| vectors | components | variance | similarity | change | CR | SUBJ | TREC |",
    "components-without": "| vectors | removed | similarity | change | CR | SUBJ | TREC |",
    "components-single": "| vectors | texts | most frequent | all | best (rank) | top | middle | bottom | trend |",
}
SHARES = (1 / 15, 1 / 5, 1 / 3, 7 / 15, 3 / 5, 2 / 3, 4 / 5, 1.0)
REMOVED = (0, 1, 3, 5)
TEXTS = {"CR": "cr.txt", "SUBJ": "subj.txt", "TREC": "trec.train.txt"}


def read_texts(name: str) -> tuple[list[str], list[str]]:
    """Texts and labels, without empty texts."""
    pairs = [pair for pair in read_labelled(data_folder() / "classification" / TEXTS[name]) if pair[1]]
    return [text for _, text in pairs], [label for label, _ in pairs]


class Scored:
    """Scores of parts of a space."""

    def __init__(self, vectors: WordVectors) -> None:
        self.vectors, self.space = vectors, PrincipalSpace(vectors)
        self.thirds = [round(vectors.dim * third / 3) for third in range(4)]
        self.texts = {}
        for name in TEXTS:
            texts, labels = read_texts(name)
            rows = (vectors.encode(texts) - self.space.mean) @ self.space.axes  # (n, d)
            gold = np.unique(labels, return_inverse=True)[1]
            self.texts[name] = rows, gold, split_texts(gold)

    def similarity(self, part: WordVectors) -> float:
        report = stillvec.evaluate(part, data_folder(), ["similarity"], resamples=0)
        return mean({score.dataset: 100 * score.value for score in report.scores if np.isfinite(score.value)})

    def change(self, part: WordVectors) -> str:
        return format_change(mean_difference(part, self.vectors, data_folder()))

    def classify(self, components: slice) -> list[float]:
        return [100 * measure_accuracy(rows[:, components], *rest) for rows, *rest in self.texts.values()]


def print_curve(name: str, scored: Scored) -> None:
    dim = scored.vectors.dim
    cuts = [round(dim * share) for share in SHARES]
    lines = {"similarity": [scored.similarity(scored.space.project(0, cut)) for cut in cuts]}
    lines |= dict(zip(TEXTS, zip(*(scored.classify(slice(0, cut)) for cut in cuts), strict=True), strict=True))
    for label, values in lines.items():
        print_row(name, label, *values, f"{saturation(dict(zip(cuts, values, strict=True)), 1.0)} of {dim}")


def print_thirds(name: str, scored: Scored, thirds: Sequence[str] = ("top", "middle", "bottom")) -> None:
    print_row(name, "all", "100%", scored.similarity(scored.vectors), "", *scored.classify(slice(None)))
    variances = scored.space.variances / scored.space.variances.sum()
    for label, first, last in zip(thirds, scored.thirds, scored.thirds[1:], strict=False):
        part = scored.space.project(first, last)
        share = f"{100 * variances[first:last].sum():.1f}%"
        print_row(
            name, label, share, scored.similarity(part), scored.change(part), *scored.classify(slice(first, last))
        )


def print_without(name: str, scored: Scored) -> None:
    for count in REMOVED:
        part = scored.space.without_top(count)
        label = f"{count}" if count else "0, mean only"
        print_row(name, label, scored.similarity(part), scored.change(part), *scored.classify(slice(count, None)))


def print_single(name: str, scored: Scored) -> None:
    for label in ("CR", "TREC"):
        probed = probe(scored.vectors, *read_texts(label), label)
        best = int(np.argmax(probed.each))
        means = [_mean(probed.each[a:b]) for a, b in zip(scored.thirds, scored.thirds[1:], strict=False)]
        shown = f"{100 * probed.each[best]:.1f} ({best + 1})"
        print_row(name, label, 100 * probed.majority, 100 * probed.whole, shown, *means, f"{probed.trend:+.2f}")


def _mean(values: Sequence[float]) -> str:
    return f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f}"


TABLES = {"curve": print_curve, "thirds": print_thirds, "without": print_without, "single": print_single}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=[*TABLES])
    parser.add_argument("vectors", nargs="+", metavar="NAME=VECTORS")
    options = parser.parse_args()
    print_header(*split_cells(HEADERS[f"components-{options.table}"]))
    for name, _, path in (text.partition("=") for text in options.vectors):
        vectors = stillvec.load(path)
        TABLES[options.table](name, Scored(vectors))
    if options.table == "thirds":
        matrix = np.random.default_rng(0).standard_normal(vectors.matrix.shape).astype(np.float32)
        print_thirds("random", Scored(vectors.with_matrix(matrix)), ["top"])


if __name__ == "__main__":
    main()
