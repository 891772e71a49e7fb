"""Does further pretraining of a teacher help the vectors of a field? No page has its table yet.

    STILLVEC_DATA=... python recipes/field_pretraining.py MiniLM=minilm --field DIR --text FILE [--rates 5e-5]

Each teacher is distilled as it is, and after `stillvec adapt --step pretrain` on the text of the field, by two methods
in one pass over the same text. `--field` has the similarity datasets of the field. Changes are from the teacher as it
is, on the same pairs. `--scores` appends rows to a file of JSON lines.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pruned_teachers import read_rated_words
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
from stillvec.adaptation.model_folder import read_adaptation
from stillvec.evaluation import mean_difference

HEADERS = {"field-pretraining": "| teacher | trained further | loss | method | field | change | 8 sets | change |"}
METHODS = "auto,aggregate"


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("teachers", nargs="+", metavar="NAME=TEACHER")
    parser.add_argument("--field", type=Path, required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--rates", type=float, nargs="+", default=(2e-5, 5e-5))
    parser.add_argument("--settings", default="epochs=1,batch=64", help="of pretrain")
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--scores", type=Path)
    options = parser.parse_args()
    print_header(*split_cells(HEADERS["field-pretraining"]))
    words = read_rated_words([data_folder(), options.field])
    for pair in options.teachers:
        name, _, teacher = pair.partition("=")
        dense: dict[str, WordVectors] = {}
        for rate in (None, *options.rates):
            with tempfile.TemporaryDirectory() as folder:
                loss, used = "", teacher
                if rate is not None:
                    step = f"pretrain:text={options.text},rate={rate},{options.settings}"
                    used = str(stillvec.adapt(teacher, step, out=Path(folder) / "further"))
                    facts = read_adaptation(Path(used))["adapted"][-1]["facts"]
                    loss = f"{facts['loss before']:.2f} to {facts['loss after']:.2f}"
                spaces = stillvec.distill_all(
                    options.text,
                    teacher=used,
                    method=METHODS,
                    max_words=options.words,
                    include_words=words,
                    statistics=False,
                    threads=options.threads,
                )
            dense = dense or spaces
            label = "no" if rate is None else f"rate {rate:g}"
            for method, vectors in spaces.items():
                cells = score_folders(vectors, dense[method], [options.field, data_folder()])
                print_row(name, label, loss, method, *cells)
                if options.scores is not None:
                    with options.scores.open("a", encoding="utf-8") as stream:
                        stream.write(json.dumps([name, label, loss, method, *cells]) + "\n")


def score_folders(vectors: WordVectors, dense: WordVectors, folders: list[Path]) -> list[str | float]:
    cells: list[str | float] = []
    for folder in folders:
        change = "" if vectors is dense else format_change(mean_difference(vectors, dense, folder))
        cells += [mean(score_similarity(vectors, folder=folder)), change]
    return cells


if __name__ == "__main__":
    main()
