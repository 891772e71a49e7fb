"""`auto` at full size beside its parts, and teachers joined into one space: two tables from results of `distill`.

    stillvec distill CORPORA --teacher DIR --method METHODS --min-count 2 --no-statistics --out out/teachers/NAME
    STILLVEC_DATA=... python recipes/joint_teachers.py parts|joint NAME=out/teachers/NAME ...

METHODS is `auto,auto:window_weight=1,aggregate:layer=best,decontextualized,additive,whitened_window`. `joint` scales
rows to unit length, weights the first teacher by 1 and each other by the weight in the table, and keeps 300 principal
components, as `--teacher A,B` does with 0.5. A script because it tries the weights.
"""

from __future__ import annotations

from pathlib import Path

from scores import DEVELOPMENT, argument_parser, mean, print_header, print_row, score_similarity, split_cells

import stillvec
from stillvec import WordVectors
from stillvec.combination.svd import Svd

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
HEADERS = {
    "teachers-parts": "| teacher | `auto` | `auto`, W | `aggregate` | `decontextualized` | `additive` | `whitened_window` | same start, `auto` | same start, W |",  # noqa: E501
    "teachers-joint": "| teachers | weight | dev | 8 | SimLex | SimVerb | RareWord | MEN |",
}


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
            others = (scores[each] for each in ("simlex999", "simverb3500", "rareword", "men3000"))
            print_row(" + ".join(names), str(weight), mean(scores, DEVELOPMENT), mean(scores), *others)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=("parts", "joint"))
    parser.add_argument("teachers", nargs="+", metavar="NAME=FOLDER")
    options = parser.parse_args()
    folders = {name: Path(folder) for name, _, folder in (each.partition("=") for each in options.teachers)}
    {"parts": print_parts, "joint": print_joint}[options.table](folders)


if __name__ == "__main__":
    main()
