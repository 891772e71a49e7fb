"""Settings of the static baselines, tried on one text and scored on the development sets only: out/tuning.json

    STILLVEC_DATA=... python recipes/tuning.py --corpus FILE [--jobs N] [--methods skipgram ...] [--parse out/parser]

Only RG-65, WordSim-353 and SimLex-999 are used. Each trial is one process with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import stillvec

DEVELOPMENT = ("rg65", "ws353", "simlex999")
TRIALS = {
    "skipgram": [
        "epochs=15",
        "window=2,epochs=15",
        "window=10,epochs=15",
        "negatives=15,epochs=10",
        "subsample=1e-3,epochs=10",
        "rate=0.025,epochs=15",
    ],
    "cbow": ["epochs=15", "window=10,epochs=30", "epochs=40", "rate=0.025,epochs=30", "negatives=15,epochs=30"],
    "fasttext": ["epochs=10", "epochs=10,window=10", "architecture=cbow,epochs=25", "min_n=4,max_n=6,epochs=10"],
    "glove": [
        "",
        "add_contexts=true,epochs=25",
        "add_contexts=true,epochs=25,x_max=100",
        "add_contexts=true,epochs=25,rate=0.15",
        "rate=0.1,epochs=10",
        "rate=0.1,epochs=10,window=5",
        "rate=0.1,epochs=10,window=15",
        "x_max=100",
        "rate=0.1,epochs=10,alpha=0.5,x_max=30",
        "rate=0.1,epochs=15",
        "rate=0.1,epochs=25",
    ],
    "sent2vec": [
        "",
        "epochs=20",
        "epochs=20,ngrams=2",
        "epochs=20,negatives=5",
        "epochs=20,subsample=1e-5",
        "epochs=20,rate=0.1",
        "epochs=20,rate=0.4",
        "epochs=10",
    ],
    "context_lstm": ["epochs=1,shared_negatives=64", "epochs=1", "epochs=2"],
    "deps": ["shared_negatives=64,rate=0.2", "rate=0.2", ""],
    "syngcn": ["epochs=1", "epochs=1,rate=0.02"],
}
PARSED = ("deps", "syngcn")  # with --parse (recipes/parses.py trains a parser)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=[name for name in TRIALS if name not in PARSED])
    parser.add_argument("--parse", metavar="PIPELINE")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, default=Path("out/tuning.json"))
    options = parser.parse_args()
    options.json.parent.mkdir(parents=True, exist_ok=True)
    columns = [[f"{name}:{each}".rstrip(":") for each in TRIALS[name]] for name in options.methods]
    trials = [column[at] for at in range(max(map(len, columns))) for column in columns if at < len(column)]
    results: dict[str, dict[str, float]] = {}

    def run_trial(trial: str) -> None:
        results[trial] = score_trial(trial, options.corpus, options.parse)
        print(f"{trial:44s} " + "  ".join(f"{key} {value:.1f}" for key, value in results[trial].items()), flush=True)
        options.json.write_text(json.dumps(results))

    with ThreadPoolExecutor(options.jobs) as pool:
        for _ in pool.map(run_trial, trials):
            pass


def score_trial(trial: str, corpus: Path, parser: str | None = None) -> dict[str, float]:
    """Train in a separate process with one thread, so that parallel trials do not share threads."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "stillvec", "train", str(corpus), "--method", trial, "--min-count", "2"]
        command += ["--parse", parser] if parser and trial.partition(":")[0] in PARSED else []
        began = time.perf_counter()
        subprocess.run(
            [*command, "--threads", "1", "--quiet", "--out", f"{folder}/vectors"],
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        seconds = time.perf_counter() - began
        vectors = stillvec.load(f"{folder}/vectors")
        data = os.environ["STILLVEC_DATA"]
        report = stillvec.evaluate(vectors, data, ["similarity"], resamples=0, only=DEVELOPMENT)
    values = {score.dataset: 100 * score.value for score in report.scores}
    return {"mean": sum(values.values()) / len(values), **values, "seconds": seconds}


if __name__ == "__main__":
    main()
