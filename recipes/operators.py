"""Word linear operators (Chen & Gimpel 2020): similarity of sentences and direction of entailment.

    STILLVEC_DATA=... STILLVEC_WORKSHOP=... python recipes/operators.py VECTORS...

VECTORS are made by `stillvec train --method word_operators`. STS benchmark: Pearson r x 100 of the cosine of means and
variances, as in the paper, and of the expected likelihood kernel. SNLI test, pairs with texts of the same number of
words: the share whose hypothesis is more general, by entropy and by information content. The four sets of
ratings: `stillvec evaluate VECTORS --data $STILLVEC_WORKSHOP --tasks specificity`.
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import numpy as np
from scores import data_folder, print_header, print_row, split_cells

from stillvec import WordVectors, load
from stillvec.evaluation.specificity import frequency_ranks
from stillvec.numerics import Gaussians, compare_gaussians, compose_operators, cosines
from stillvec.vocabulary import WordMatcher

HEADERS = {
    "operators": "| vectors | STS, moments | STS, kernel | entailed, entropy | neutral | contradicted "
    "| entailed, information | neutral | contradicted | pairs |"
}


def main() -> None:
    print_header(*split_cells(HEADERS["operators"]))
    with open(data_folder() / "sentences" / "stsb.test.csv", encoding="utf-8", newline="") as stream:
        rated = [(row[0], row[1], float(row[2])) for row in csv.reader(stream)]
    lines = (Path(os.environ["STILLVEC_WORKSHOP"]) / "pairs" / "snli.test.tsv").read_text("utf-8").splitlines()
    inferred = [line.split("\t")[:3] for line in lines]
    equal = [fields for fields in inferred if len(fields[1].split()) == len(fields[2].split())]
    for path in sys.argv[1:]:
        vectors = load(path)
        a, b = (read(vectors, [row[side] for row in rated]) for side in (0, 1))
        gold = np.array([row[2] for row in rated])
        similar = cosines(a.moments(), b.moments()), compare_gaussians(a, b)
        cells = [100 * float(np.corrcoef(each, gold)[0, 1]) for each in similar]
        for measure in (specificity, information):
            premise, hypothesis = (measure(vectors, [fields[side] for fields in equal]) for side in (1, 2))
            for label in ("entailment", "neutral", "contradiction"):
                chosen = np.array([fields[0] == label for fields in equal])
                cells.append(100 * float((hypothesis < premise)[chosen].mean()))
        print_row(Path(path).name, *cells, f"{len(equal)}")


def read(vectors: WordVectors, texts: list[str]) -> Gaussians:
    rows, text = WordMatcher(vectors.vocabulary).match_rows(texts)
    known = rows >= 0
    return compose_operators(vectors.matrix, rows[known].astype(np.int64), text[known], len(texts))


def specificity(vectors: WordVectors, texts: list[str]) -> np.ndarray:
    return -read(vectors, texts).entropy()


def information(vectors: WordVectors, texts: list[str]) -> np.ndarray:
    rows, text = WordMatcher(vectors.vocabulary).match_rows(texts)
    ranks = frequency_ranks(vectors.vocabulary)
    return np.bincount(text, np.log(np.where(rows >= 0, ranks[np.maximum(rows, 0)], len(ranks))), minlength=len(texts))


if __name__ == "__main__":
    main()
