"""Combinations of methods compared with each method alone, on their common words: every combiner, every group.

    STILLVEC_DATA=... python recipes/combinations.py VECTORS VECTORS ... [--json out/combinations.json]

Each space is centered and normalized first. RG-65, WordSim-353 and SimLex-999 select the best single space and the best
combination; their difference, with its confidence interval, is measured on the held-out datasets. A script because it
selects on the development sets; one combination is `stillvec combine`.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

from scores import (
    DEVELOPMENT,
    HELD_OUT,
    argument_parser,
    data_folder,
    format_change,
    mean,
    print_header,
    print_row,
    score_similarity,
    split_cells,
    write_json,
)

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import mean_difference

HEADERS = {"combinations": "| vectors | mean of 8 | development | held out |"}
METHODS = {
    "concat": "concat",
    "average": "average",
    "svd": "svd",
    "gcca": "gcca",
    "geometric": "geometric",
    "geometric, concat": "geometric:output=concat",
}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("vectors", nargs="+", type=Path)
    parser.add_argument("--json", type=Path, default=Path("out/combinations.json"))
    options = parser.parse_args()
    spaces = _align_words({path.name: stillvec.load(path) for path in options.vectors})
    tried = dict(spaces)
    for size in (2, 3, len(spaces)):
        for names in combinations(spaces, size):
            for label, method in METHODS.items():
                if not (label.startswith("geometric") and size > 3):  # too slow for all pairs
                    spec = f"{method}{',' if ':' in method else ':'}words=intersection"
                    tried[f"{label}: {' + '.join(names)}"] = stillvec.combine([spaces[name] for name in names], spec)
    scores = {name: score_similarity(vectors) for name, vectors in tried.items()}
    alone = max(spaces, key=lambda name: mean(scores[name], DEVELOPMENT))
    print_header(*split_cells(HEADERS["combinations"]))
    best = sorted(tried, key=lambda name: -mean(scores[name], DEVELOPMENT))
    for name in [*spaces, *[name for name in best if name not in spaces][:12]]:
        print_row(name, *(mean(scores[name], datasets) for datasets in (None, DEVELOPMENT, HELD_OUT)))
    results: dict[str, Any] = {"scores": scores, "alone": alone, "differences": {}}
    for label in METHODS:
        first = next((name for name in best if name.startswith(f"{label}: ")), None)
        if first:
            gain = mean_difference(tried[first], tried[alone], data_folder(), HELD_OUT)
            results["differences"][first] = [*gain]
            print(f"held out, best {first} compared with {alone}: {format_change(gain)}", flush=True)
    write_json(options.json, results)


def _align_words(spaces: dict[str, WordVectors]) -> dict[str, WordVectors]:
    """The common words, centered and normalized."""
    first, *others = spaces.values()
    common = [word for word in first.words if all(word in other for other in others)]
    return {name: stillvec.refine(vectors.subset(common), "center", "normalize") for name, vectors in spaces.items()}


if __name__ == "__main__":
    main()
