"""`auto` with several teachers, beside its parts: out/teachers/NAME, and a table.

    STILLVEC_DATA=... python recipes/teachers.py MiniLM=minilm MPNet=DIR granite=DIR ...

For two CPU cores: the words of the similarity datasets that the corpora have five times, and 1,500 frequent ones, two
contexts each; Bio-SimLex's words too if its file is next to the data. A script because it draws the words.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scores import (
    DEVELOPMENT,
    argument_parser,
    corpus_files,
    data_folder,
    mean,
    print_header,
    print_row,
    score_similarity,
    split_cells,
)

import stillvec
from stillvec.corpus import Corpus
from stillvec.pipeline.count_pool import count_corpus
from stillvec.pipeline.settings import Training
from stillvec.progress import drain

N_FREQUENT = 1500
HEADERS = {
    "auto-teachers": "| teacher | `auto` | dev | `aggregate` (best layer) | `decontextualized` | `additive` | layers |"
}


def draw_words() -> list[str]:
    wanted = set()
    files = [*data_folder().glob("similarity/*.tsv"), *data_folder().parent.glob("domain/*/similarity/*.tsv")]
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            wanted.update(word.lower() for word in line.split("\t")[:2])
    vocabulary, _ = drain(count_corpus(Corpus(*corpus_files()), Training(min_count=5)))
    frequent = np.argsort(-vocabulary.counts, kind="stable")[:N_FREQUENT].tolist()
    rows = sorted({*frequent, *(vocabulary.index[word] for word in wanted if word in vocabulary.index)})
    return [vocabulary.words[row] for row in rows]


def distil(name: str, teacher: str, words: list[str], precision: str) -> dict[str, stillvec.WordVectors]:
    out = Path("out/teachers") / name
    methods = "auto,decontextualized:layer=last,additive:layer=last,aggregate"
    return stillvec.distill_all(
        corpus_files(), teacher=teacher, method=methods, layer="all", include_words=words, min_count=10**9, contexts=2,
        precision=precision, statistics=False, out=out, progress=True,
    )  # fmt: skip


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("teachers", nargs="+", metavar="NAME=TEACHER")
    parser.add_argument("--precision", default="auto")
    options = parser.parse_args()
    words = draw_words()
    rows = []
    for each in options.teachers:
        name, _, teacher = each.partition("=")
        vectors = distil(name, teacher, words, options.precision)
        scores = {label: score_similarity(one) for label, one in vectors.items()}
        layers = {label: mean(each) for label, each in scores.items() if label.startswith("aggregate")}
        best = max(layers, key=layers.__getitem__)
        notes = vectors["auto"].provenance["notes"]
        chosen = f"{notes['layers']}, {notes['template_layers']} of {len(layers) - 1}"
        means = [mean(scores["auto"]), mean(scores["auto"], DEVELOPMENT), layers[best]]
        means += [mean(scores["decontextualized"]), mean(scores["additive"])]
        rows.append((name, *means[:2], f"{means[2]:.1f} ({best.rpartition('-')[2]})", *means[3:], chosen))
    print(f"{len(words):,} words")
    print_header(*split_cells(HEADERS["auto-teachers"]))
    for row in rows:
        print_row(*row)


if __name__ == "__main__":
    main()
