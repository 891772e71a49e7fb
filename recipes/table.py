"""The big table of docs/results.md: every static baseline and every distilled method on one corpus, side by side.

    STILLVEC_DATA=... python recipes/table.py [--corpus FILE...] [--parse PIPELINE] [--teacher DIR] [--out DIR]
        [--only A B] [--contexts N] [--precision P] [--together]
    STILLVEC_DATA=... python recipes/table.py --show DIR

Each row is a process of its own, so that its seconds and its largest memory are its own too: `stillvec train` or
`distill`, then `stillvec evaluate` with all intrinsic sets. With --together the distilled methods that are lacking
listen to one reading, where no GPU is there to read for each: they tell what all of them took, in brackets. What is
there already is not made again. Both corpora by default; for a million words, `--corpus out/sizes/every-16.txt`
(recipes/sizes.py --texts writes it). Methods that need parses are left out without a spaCy pipeline that makes them
(recipes/parses.py trains one).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PARSED = ("deps", "syngcn")
BASELINES = ("skipgram", "cbow", "fasttext", "glove", "sent2vec", *PARSED, "context_lstm")
LEARNERS = (
    "auto", "aggregate", "decontextualized", "first_component", "token_table", "whitened_context", "additive",
    "x2static", "attentive_skipgram", "context_to_vec",
)  # fmt: skip
TASKS = "similarity,analogy,relation,categorization,sentences"
DEVELOPMENT = ("rg65", "ws353", "simlex999")
COLUMNS = {  # heading: task, dataset, metric
    "Google": ("analogy", "google", "accuracy"),
    "MSR": ("analogy", "msr", "accuracy"),
    "SemEval": ("relation", "semeval2012", "spearman-order"),
    "AP": ("categorization", "ap", "purity"),
    "Battig": ("categorization", "battig", "purity"),
    "STS": ("sentences", "stsb.test", "spearman-sif"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="+")
    parser.add_argument("--parse", metavar="PIPELINE", help="of spaCy's, for methods that need parses")
    parser.add_argument("--teacher", default=os.environ.get("STILLVEC_MINILM", "minilm"))
    parser.add_argument("--out", type=Path, default=Path("out/table"))
    parser.add_argument("--only", nargs="+", default=BASELINES + LEARNERS, help="with settings: cbow:epochs=15")
    parser.add_argument("--contexts", default="all")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--threads", default=str(os.cpu_count()))
    parser.add_argument("--together", action="store_true", help="distilled methods share one reading")
    parser.add_argument("--show", type=Path)
    options = parser.parse_args()
    if options.show is None:
        data = os.environ["STILLVEC_DATA"]
        options.corpus = options.corpus or sorted(map(str, Path(data, "corpora").glob("*.txt.xz")))
        options.out.mkdir(parents=True, exist_ok=True)
        if options.together:
            _make_together(options)
        for method in options.only:
            if method.partition(":")[0] not in PARSED or options.parse:
                _make(method, options)
            else:
                print(f"{method}: left out, it needs --parse", flush=True)
    show(options.show or options.out)


def _make(method: str, options: argparse.Namespace) -> None:
    name = _name(method)
    place, cost, scores = options.out / name, options.out / f"{name}.cost.json", options.out / f"{name}.json"
    kind = method.partition(":")[0]
    call = ["train", *options.corpus, "--threads", options.threads]
    call += ["--parse", options.parse] if kind in PARSED else []
    if not cost.exists():
        found = _run([*(_distill(options) if kind in LEARNERS else call), *_rest(method, place)])
        cost.write_text(json.dumps(found))
    if not scores.exists():
        _run(["evaluate", str(place), "--tasks", TASKS, "--quiet", "--json", str(scores)])


def _make_together(options: argparse.Namespace) -> None:
    lacking = [method for method in options.only if method.partition(":")[0] in LEARNERS]
    lacking = [method for method in lacking if not (options.out / f"{_name(method)}.cost.json").exists()]
    if len(lacking) < 2:
        return
    place = options.out / "together"
    found = _run([*_distill(options), *_rest(",".join(lacking), place)]) | {"together": len(lacking)}
    for method in lacking:
        (place / _name(method)).rename(options.out / _name(method))
        (options.out / f"{_name(method)}.cost.json").write_text(json.dumps(found))


def _distill(options: argparse.Namespace) -> list[str]:
    teacher = ["--teacher", options.teacher, "--contexts", options.contexts, "--precision", options.precision]
    return ["distill", *options.corpus, *teacher, "--no-statistics"]


def _rest(method: str, place: Path) -> list[str]:
    return ["--method", method, "--min-count", "2", "--quiet", "--out", str(place)]


def _name(method: str) -> str:
    return re.sub("[^A-Za-z0-9._]+", "-", method)


def _run(call: list[str]) -> dict[str, float]:
    """Seconds, those of the processors, and gigabytes of the largest of its processes."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "stillvec", *call], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"stillvec {' '.join(call)} failed.")
    print(f"stillvec {' '.join(call)}: {time.perf_counter() - begun:.0f} s", flush=True)
    seconds = {"seconds": time.perf_counter() - begun, "processor": used.ru_utime + used.ru_stime}
    return {**seconds, "gigabytes": used.ru_maxrss / 2**20}


def show(folder: Path) -> None:
    """Markdown, the best first; a mean of eight has its 95% interval."""
    rows = [_row(path) for path in folder.glob("*.json") if not path.name.endswith(".cost.json")]
    heads = ("vectors", "8 [95%]", "development", "held out", *COLUMNS, "seconds", "processor", "GB")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for _, cells in sorted(rows, key=lambda row: -row[0]):
        print("| " + " | ".join(cells) + " |")


def _row(path: Path) -> tuple[float, list[str]]:
    found = json.loads(path.read_text())
    report: Mapping[str, Any] = found[0] if isinstance(found, list) else found
    own = [score for score in report["scores"] if score["words"] == "own"]
    similar = [score for score in own if score["task"] == "similarity" and score["value"] is not None]
    single = {score["dataset"]: 100 * score["value"] for score in similar}
    mean = next(each for each in report["means"] if each["task"] == "similarity" and each["words"] == "own")
    parts = [[value for name, value in single.items() if (name in DEVELOPMENT) == held] for held in (True, False)]
    others = [next((s for s in own if _is(s, wanted)), None) for wanted in COLUMNS.values()]
    cost = json.loads(path.with_name(f"{path.stem}.cost.json").read_text())
    value, low, high = (100 * mean[key] for key in ("value", "low", "high"))
    return value, [
        f"`{path.stem}`",
        f"{value:.1f} [{low:.1f}, {high:.1f}]",
        *(f"{sum(part) / max(len(part), 1):.1f}" for part in parts),
        *("–" if score is None or score["value"] is None else f"{100 * score['value']:.1f}" for score in others),
        *(_cost(cost, key, digits) for key, digits in (("seconds", 0), ("processor", 0), ("gigabytes", 1))),
    ]


def _cost(cost: Mapping[str, float], key: str, digits: int) -> str:
    told = f"{cost[key]:.{digits}f}" if key in cost else "–"
    return f"({told})" if "together" in cost else told


def _is(score: Mapping[str, Any], wanted: tuple[str, str, str]) -> bool:
    return (score["task"], score["dataset"]) == wanted[:2] and score["metric"] == wanted[2]


if __name__ == "__main__":
    main()
