"""A table of docs/papers/18-pruning.md: what is distilled from pruned teachers over a corpus (Gordon et al. 2020).

    STILLVEC_DATA=... python recipes/pruned_teachers.py MiniLM=minilm MPNet=$STILLVEC_MPNET

Each teacher is pruned to each sparsity (`stillvec adapt`) and distilled by three methods in one pass. The vocabulary
is the most frequent words of the corpus and all words of the datasets. Changes are from the same method with the dense
teacher, on the same pairs. `--scores` appends the score of each dataset to a file of JSON lines.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from scores import (
    argument_parser,
    corpus_files,
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
from stillvec.evaluation import mean_difference

HEADERS = {"pruning-corpus": "| teacher | method | sparsity | 8 sets | change |"}
METHODS = "auto,aggregate,additive"
SPARSITIES = (0.0, 0.2, 0.3, 0.4, 0.6)
N_WORDS = 20_000


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("teachers", nargs="+", metavar="NAME=TEACHER")
    parser.add_argument("--sparsities", type=float, nargs="+", default=SPARSITIES)
    parser.add_argument("--by", default="magnitude", choices=("magnitude", "chance"))
    parser.add_argument("--corpus", nargs="+", default=None, help="default: the corpora of $STILLVEC_DATA")
    parser.add_argument("--words", type=int, default=N_WORDS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--scores", type=Path)
    options = parser.parse_args()
    print_header(*split_cells(HEADERS["pruning-corpus"]))
    words = read_rated_words([data_folder()])
    for pair in options.teachers:
        name, _, teacher = pair.partition("=")
        dense: dict[str, WordVectors] = {}
        for sparsity in options.sparsities:
            with tempfile.TemporaryDirectory() as folder:
                step = f"prune:sparsity={sparsity},by={options.by}"
                pruned = stillvec.adapt(teacher, step, out=Path(folder) / "pruned")
                spaces = stillvec.distill_all(
                    options.corpus or corpus_files(),
                    teacher=str(pruned),
                    method=METHODS,
                    max_words=options.words,
                    include_words=words,
                    statistics=False,
                    threads=options.threads,
                )
            dense = dense or spaces
            for method, vectors in spaces.items():
                print_scores(name, method, sparsity, vectors, dense[method], options.scores)


def read_rated_words(folders: list[Path]) -> list[str]:
    files = [file for folder in folders for file in sorted((folder / "similarity").glob("*.tsv"))]
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    return sorted({word.lower() for line in lines for word in line.split("\t")[:2] if word.strip()})


def print_scores(
    name: str, method: str, sparsity: float, vectors: WordVectors, dense: WordVectors, file: Path | None
) -> None:
    scores = score_similarity(vectors)
    change = "" if vectors is dense else format_change(mean_difference(vectors, dense, data_folder()))
    cells = [mean(scores), change]
    print_row(name, method, f"{sparsity:.0%}", *cells)
    if file is not None:
        with file.open("a", encoding="utf-8") as stream:
            row = {"teacher": name, "method": method, "sparsity": sparsity, "cells": cells, "scores": scores}
            stream.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
