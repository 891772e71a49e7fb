"""Whether the memory that `--dry-run` estimates is an upper bound: ten settings, also of runs that are resumed.

    python benchmarks/memory.py [--words 5000] [--teacher minilm] [--only NUMBER ...]

The text has each word about six times. A resumed run is killed after its first checkpoint, and then measured.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTINGS = (
    ("--method", "aggregate"),
    ("--method", "aggregate:layer=all"),
    ("--method", "auto"),
    ("--method", "auto", "--purpose", "sentences"),
    ("--method", "auto,aggregate,decontextualized"),
    ("--method", "first_component"),
    ("--method", "whitened_context"),
    ("--method", "x2static"),
    ("--method", "aggregate:layer=all", "--resume"),
    ("--method", "auto", "--resume"),
)
FAST_CHECKPOINTS = """
import sys
from stillvec.pipeline import pass_checkpoint
pass_checkpoint.EVERY = pass_checkpoint._LOST = 0.5
from stillvec.cli import main
sys.exit(main(sys.argv[1:]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=5_000)
    parser.add_argument("--teacher", default="minilm")
    parser.add_argument("--only", type=int, nargs="+", default=range(len(SETTINGS)), metavar="NUMBER")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        corpus = write_corpus(Path(name) / "corpus.txt", options.words)
        for number in options.only:
            out = str(Path(name) / f"out-{number}")
            flags = [
                "--min-count",
                "1",
                "--contexts",
                "all",
                "--device",
                "cpu",
                "--quiet",
                "--context-cache",
                f"{out}-c",
            ]
            call = ["distill", str(corpus), "--teacher", options.teacher, "--out", out, *SETTINGS[number], *flags]
            estimate, peak = estimate_memory(call), measure_memory(call)
            verdict = "" if estimate >= peak else "  UNDER"
            setting = " ".join(SETTINGS[number])
            print(
                f"{number} {setting:50} {estimate / 1e6:7,.0f} MB told {peak / 1e6:7,.0f} MB taken{verdict}", flush=True
            )


def write_corpus(path: Path, n_words: int) -> Path:
    choose = random.Random(0)
    words = [f"{choose.choice('bdfklmnprst')}{choose.choice('aeiou')}{number}" for number in range(n_words)] * 6
    choose.shuffle(words)
    path.write_text("\n".join(" ".join(words[at : at + 12]) for at in range(0, len(words), 12)), "utf-8")
    return path


def estimate_memory(call: list[str]) -> float:
    plan = [word for word in call if word != "--resume"]
    command = [sys.executable, "-m", "stillvec", *plan, "--dry-run"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    number, unit = re.findall(r"memory +([\d.,]+) (MB|GB) at the peak", text)[0]
    return float(number.replace(",", "")) * {"MB": 1e6, "GB": 1e9}[unit]


def measure_memory(call: list[str]) -> int:
    command = [sys.executable, "-c", FAST_CHECKPOINTS, *call]
    if "--resume" in call:
        checkpoint = Path(f"{call[call.index('--out') + 1]}.checkpoint")
        with subprocess.Popen(command) as process:
            while process.poll() is None and not checkpoint.exists():
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(call)}")
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
