"""The large table of docs/results.md: every baseline and every distilled method on one corpus, side by side.

    STILLVEC_DATA=... python recipes/table.py [--corpus FILE...] [--parse PIPELINE] [--teacher DIR] [--out DIR]
        [--only A B] [--contexts N] [--precision P] [--together]
    STILLVEC_DATA=... python recipes/table.py --show DIR

A script because it measures time and peak memory: each row runs in its own process, `stillvec train` or `distill`, then
`stillvec evaluate` with all intrinsic datasets. With --together, the missing distilled methods share one forward pass,
for machines without a GPU; their time and memory are those of all of them, in brackets. Existing results are kept.
The default corpus is both corpora; for a million words, `--corpus out/sizes/every-16.txt` (recipes/texts.py writes it).
Methods that need parses are skipped without a spaCy pipeline (recipes/parses.py trains one).
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

from scores import (
    DEVELOPMENT,
    OTHER_SCORES,
    argument_parser,
    corpus_files,
    format_interval,
    mean,
    print_header,
    print_row,
    split_cells,
)

from stillvec.pipeline.settings import parse_methods

PARSED = ("deps", "syngcn")
BASELINES = ("skipgram", "cbow", "fasttext", "glove", "sent2vec", *PARSED, "context_lstm")
LEARNERS = (
    "auto", "aggregate", "decontextualized", "first_component", "token_table", "whitened_context",
    "whitened_window", "additive",
    "x2static", "attentive_skipgram", "context_to_vec",
)  # fmt: skip
TASKS = "similarity,analogy,relation,categorization,sentences"
COLUMNS = ("Google", "MSR", "SemEval", "AP", "Battig", "STS-SIF")
HEADERS = {
    "baselines": "| vectors | 8 [95%] | development | held out | Google | MSR | SemEval | AP | Battig | STS-SIF "
    "| seconds | CPU seconds | GB |",
    "baselines-large": "| vectors | 8 [95%] | development | held out | Google | MSR | SemEval | AP | Battig | STS-SIF "
    "| seconds | CPU seconds | GB |",
}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--corpus", nargs="+")
    parser.add_argument("--parse", metavar="PIPELINE", help="spaCy pipeline, for methods that need parses")
    parser.add_argument("--teacher", default=os.environ.get("STILLVEC_MINILM", "minilm"))
    parser.add_argument("--out", type=Path, default=Path("out/table"))
    parser.add_argument("--only", nargs="+", default=BASELINES + LEARNERS, help="with settings: cbow:epochs=15")
    parser.add_argument("--contexts", default="all")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--threads", default=str(os.cpu_count()))
    parser.add_argument("--together", action="store_true", help="distilled methods share one forward pass")
    parser.add_argument("--show", type=Path)
    options = parser.parse_args()
    if options.show is None:
        options.corpus = options.corpus or corpus_files()
        options.out.mkdir(parents=True, exist_ok=True)
        if options.together:
            _make_together(options)
        for method in options.only:
            if method.partition(":")[0] not in PARSED or options.parse:
                _make(method, options)
            else:
                print(f"{method}: skipped, it needs --parse", flush=True)
    show(options.show or options.out)


def _make(method: str, options: argparse.Namespace) -> None:
    name = _name(method)
    place, cost, scores = options.out / name, options.out / f"{name}.cost.json", options.out / f"{name}.json"
    kind = method.partition(":")[0]
    call = ["train", *options.corpus, "--threads", options.threads]
    call += ["--parse", options.parse] if kind in PARSED else []
    if not cost.exists():
        result = _run([*(_distill(options) if kind in LEARNERS else call), *_rest(method, place)])
        cost.write_text(json.dumps(result))
    if not scores.exists():
        _run(["evaluate", str(place), "--tasks", TASKS, "--quiet", "--json", str(scores)])


def _make_together(options: argparse.Namespace) -> None:
    missing = [method for method in options.only if method.partition(":")[0] in LEARNERS]
    missing = [method for method in missing if not (options.out / f"{_name(method)}.cost.json").exists()]
    if len(missing) < 2:
        return
    place, together = options.out / "together", ",".join(missing)
    result = _run([*_distill(options), *_rest(together, place)]) | {"together": len(missing)}
    for method, (folder, _) in zip(missing, parse_methods(together), strict=True):
        (place / folder).rename(options.out / _name(method))
        (options.out / f"{_name(method)}.cost.json").write_text(json.dumps(result))


def _distill(options: argparse.Namespace) -> list[str]:
    teacher = ["--teacher", options.teacher, "--contexts", options.contexts, "--precision", options.precision]
    return ["distill", *options.corpus, *teacher, "--no-statistics"]


def _rest(method: str, place: Path) -> list[str]:
    return ["--method", method, "--min-count", "2", "--quiet", "--out", str(place), "--force"]


def _name(method: str) -> str:
    return re.sub("[^A-Za-z0-9._]+", "-", method)


def _run(call: list[str]) -> dict[str, float]:
    """Run stillvec; return wall time, CPU time, and the memory of its largest process."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "stillvec", *call], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"stillvec {' '.join(call)} failed.")
    print(f"stillvec {' '.join(call)}: {time.perf_counter() - begun:.0f} s", flush=True)
    seconds = {"seconds": time.perf_counter() - begun, "processor": used.ru_utime + used.ru_stime}
    return {**seconds, "gigabytes": used.ru_maxrss / 2**20}


def show(folder: Path) -> None:
    """Print a Markdown table, best first, with the 95% interval of the mean of eight."""
    rows = [_row(path) for path in folder.glob("*.json") if not path.name.endswith(".cost.json")]
    print_header(*split_cells(HEADERS["baselines"]))
    for _, cells in sorted(rows, key=lambda row: -row[0]):
        print_row(*cells)


def _row(path: Path) -> tuple[float, list[str]]:
    content = json.loads(path.read_text())
    report: Mapping[str, Any] = content[0] if isinstance(content, list) else content
    own = [score for score in report["scores"] if score["words"] == "own"]
    similar = [score for score in own if score["task"] == "similarity" and score["value"] is not None]
    single = {score["dataset"]: 100 * score["value"] for score in similar}
    overall = next(m for m in report["means"] if m["task"] == "similarity" and m["words"] == "own")
    parts = [[name for name in single if (name in DEVELOPMENT) == chosen] for chosen in (True, False)]
    others = [next((s for s in own if _is(s, wanted)), None) for wanted in [OTHER_SCORES[name] for name in COLUMNS]]
    cost = json.loads(path.with_name(f"{path.stem}.cost.json").read_text())
    return overall["value"], [
        f"`{path.stem}`",
        format_interval(overall["value"], overall["low"], overall["high"]),
        *(f"{mean(single, part):.1f}" if part else "–" for part in parts),
        *("–" if score is None or score["value"] is None else f"{100 * score['value']:.1f}" for score in others),
        *(_cost(cost, key, digits) for key, digits in (("seconds", 0), ("processor", 0), ("gigabytes", 1))),
    ]


def _cost(cost: Mapping[str, float], key: str, digits: int) -> str:
    shown = f"{cost[key]:.{digits}f}" if key in cost else "–"
    return f"({shown})" if "together" in cost else shown


def _is(score: Mapping[str, Any], wanted: tuple[str, str, str]) -> bool:
    return (score["task"], score["dataset"]) == wanted[:2] and score["metric"] == wanted[2]


if __name__ == "__main__":
    main()
