"""Combinations of methods compared with each method alone, on their common words: every combiner, every group.

    STILLVEC_DATA=... python recipes/combinations.py VECTORS VECTORS ... [--json out/combinations.json]

Each space is centered and normalized first. RG-65, WordSim-353 and SimLex-999 select the best single space and the best
combination; their difference, with its confidence interval, is measured on the held-out datasets.
"""

from __future__ import annotations

import argparse
import json
import os
from itertools import combinations
from pathlib import Path
from typing import Any

import stillvec
from stillvec import WordVectors
from stillvec.combination import COMBINERS
from stillvec.evaluation import mean_difference
from stillvec.refinement.center import Center
from stillvec.refinement.normalize import Normalize

DATA = Path(os.environ["STILLVEC_DATA"])
DEVELOPMENT = ("rg65", "ws353", "simlex999")
HELD_OUT = ("simverb3500", "rareword", "men3000")
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "concat": ("concat", {}),
    "average": ("average", {}),
    "svd": ("svd", {}),
    "gcca": ("gcca", {}),
    "geometric": ("geometric", {}),
    "geometric, concat": ("geometric", {"output": "concat"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", nargs="+", type=Path)
    parser.add_argument("--json", type=Path, default=Path("out/combinations.json"))
    options = parser.parse_args()
    spaces = _align_words({path.name: stillvec.load(path) for path in options.vectors})
    tried = dict(spaces)
    for size in (2, 3, len(spaces)):
        for names in combinations(spaces, size):
            for label, (method, settings) in METHODS.items():
                if not (method == "geometric" and size > 3):  # too slow for all pairs
                    together = COMBINERS[method](words="intersection", **settings)
                    tried[f"{label}: {' + '.join(names)}"] = together(*(spaces[name] for name in names))
    scores = {name: _scores(vectors) for name, vectors in tried.items()}
    alone = max(spaces, key=lambda name: _mean(scores[name], DEVELOPMENT))
    print("| vectors | mean of 8 | development | held out |\n|---|---|---|---|")
    best = sorted(tried, key=lambda name: -_mean(scores[name], DEVELOPMENT))
    for name in [*spaces, *[name for name in best if name not in spaces][:12]]:
        cells = [_mean(scores[name], datasets) for datasets in (tuple(scores[name]), DEVELOPMENT, HELD_OUT)]
        print(f"| {name} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |", flush=True)
    results: dict[str, Any] = {"scores": scores, "alone": alone, "differences": {}}
    for label in METHODS:
        first = next((name for name in best if name.startswith(f"{label}: ")), None)
        if first:
            gain = mean_difference(tried[first], tried[alone], DATA, HELD_OUT)
            results["differences"][first] = [*gain]
            shown = f"{100 * gain.value:+.1f} [{100 * gain.low:.1f}, {100 * gain.high:.1f}]"
            print(f"held out, best {first} compared with {alone}: {shown}", flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results))


def _align_words(spaces: dict[str, WordVectors]) -> dict[str, WordVectors]:
    """The common words, centered and normalized."""
    first, *others = spaces.values()
    common = [word for word in first.words if all(word in other for other in others)]
    return {name: Normalize()(Center()(vectors.subset(common))) for name, vectors in spaces.items()}


def _scores(vectors: WordVectors) -> dict[str, float]:
    report = stillvec.evaluate(vectors, DATA, ["similarity"], resamples=0)
    return {score.dataset: 100 * score.value for score in report.scores if score.words == "own"}


def _mean(scores: dict[str, float], names: tuple[str, ...]) -> float:
    return sum(scores[name] for name in names) / len(names)


if __name__ == "__main__":
    main()
