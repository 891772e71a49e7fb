"""Whether the memory that `--dry-run` tells is an upper bound: fourteen settings, also of runs that are resumed.

    python benchmarks/memory.py [--lines 40] [--words 15000] [--only NUMBER ...] [--markdown]

MiniLM reads the first lines of gensim's packaged news; a one-layer BERT with random weights reads words of syllables,
each twice, which makes large vocabularies. Taken is the largest resident set size of the process, as
`/usr/bin/time -v` reports it, with the private memory of its worker processes, sampled. A run that is resumed is killed
after its second checkpoint; both the estimate and the measurement are those of the second run.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

NEWS, SYLLABLES = "MiniLM, news", "one layer, syllables"
UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}
N_CHECKPOINTS = 2  # before a run that is resumed is killed
FAST_CHECKPOINTS = """
import sys
from stillvec.pipeline import pass_checkpoint
from stillvec.training import checkpoint
pass_checkpoint.EVERY = checkpoint._EVERY = 0.5
pass_checkpoint._TIMES = 0
from stillvec.cli import main
sys.exit(main(sys.argv[1:]))
"""


class Setting(NamedTuple):
    text: str
    flags: str
    resumed: bool = False


SETTINGS = (
    Setting(NEWS, "--method aggregate --contexts 5"),
    Setting(NEWS, "--method aggregate --layer all --contexts 20 --precision fp32", resumed=True),
    Setting(NEWS, "--method auto --contexts 20 --precision int8"),
    Setting(NEWS, "--method auto --contexts 5", resumed=True),
    Setting(NEWS, "--method x2static --contexts 5"),
    Setting(NEWS, "--method context_to_vec:stream=true --contexts 5"),
    Setting(SYLLABLES, "--method auto --for sentences --contexts all"),
    Setting(SYLLABLES, "--method first_component,whitened_context --contexts 20"),
    Setting(SYLLABLES, "--method auto --contexts 20 --oov subword", resumed=True),
    Setting(SYLLABLES, "--method aggregate --layer all --contexts all", resumed=True),
    Setting(SYLLABLES, "--method first_component --contexts all", resumed=True),
    Setting(SYLLABLES, "--method x2static,attentive_skipgram --contexts all"),
    Setting(SYLLABLES, "--method x2static --contexts all", resumed=True),
    Setting(SYLLABLES, "--method auto,decontextualized,token_table --dim 50 --contexts 5"),
)


class Sizes(NamedTuple):
    estimated: float
    taken: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=40, help="of the news")
    parser.add_argument("--words", type=int, default=15_000, help="of syllables")
    parser.add_argument("--only", type=int, nargs="+", default=range(len(SETTINGS)), metavar="NUMBER")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/performance.md")
    options = parser.parse_args()
    row = (
        "| {} | {} | {} | {:,.0f} | {:,.0f} | {:.2f} |"
        if options.markdown
        else "{:2} {:20} {:70} {:7,.0f} {:7,.0f} {:.2f}"
    )
    with tempfile.TemporaryDirectory() as name:
        for number in options.only:
            setting = SETTINGS[number]
            sizes = compare(setting, Path(name) / str(number), lines=options.lines, words=options.words)
            flags = setting.flags + (" --resume" if setting.resumed else "")
            megabytes = sizes.estimated / 1e6, sizes.taken / 1e6
            print(row.format(number, setting.text, flags, *megabytes, sizes.estimated / sizes.taken), flush=True)


def compare(setting: Setting, folder: Path, *, lines: int, words: int) -> Sizes:
    """What `--dry-run` estimates, and what the run takes, in bytes."""
    folder.mkdir()
    corpus, teacher = (write_news if setting.text == NEWS else write_syllables)(folder, lines, words)
    call = ["distill", str(corpus), "--teacher", teacher, "--out", str(folder / "out"), *setting.flags.split()]
    call += ["--min-count", "1", "--device", "cpu", "--quiet", "--context-cache", str(folder / "contexts")]
    if setting.resumed:
        kill_run(call, folder / "out.checkpoint")
        call.append("--resume")
    return Sizes(estimate_memory(call), measure_memory(call))


def write_news(folder: Path, lines: int, words: int) -> tuple[Path, str]:
    from gensim.test.utils import datapath

    text = Path(datapath("lee_background.cor")).read_text("utf-8").splitlines(keepends=True)
    (folder / "news.txt").write_text("".join(text[:lines]), "utf-8")
    return folder / "news.txt", "minilm"


def write_syllables(folder: Path, lines: int, words: int) -> tuple[Path, str]:
    import bounded

    syllables = [*map("".join, itertools.product("bcdfghjklmnpqrstvwxz", "aeiou", "bdgklmnrst"))]
    bounded.write_teacher(folder / "teacher", syllables, 512)
    bounded.write_text(folder / "text.txt", syllables, words)
    text = (folder / "text.txt").read_text("utf-8")
    (folder / "text.txt").write_text(2 * text, "utf-8")
    return folder / "text.txt", str(folder / "teacher")


def estimate_memory(call: list[str]) -> float:
    command = [sys.executable, "-m", "stillvec", *call, "--dry-run"]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    number, unit = re.findall(r"memory +(?:at most )?([\d.,]+) (KB|MB|GB)", text)[0]
    return float(number.replace(",", "")) * UNITS[unit]


def kill_run(call: list[str], checkpoint: Path) -> None:
    """Kill a run after some checkpoints."""
    seen = set()
    with subprocess.Popen([sys.executable, "-c", FAST_CHECKPOINTS, *call], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and len(seen) < N_CHECKPOINTS:
            with suppress(FileNotFoundError):
                seen.add(checkpoint.stat().st_mtime_ns)
            time.sleep(0.02)
        process.kill()
    if not checkpoint.exists():
        raise SystemExit(f"the run ended without a checkpoint: {' '.join(call)}")


def measure_memory(call: list[str]) -> int:
    """Bytes at the peak of a process, and of its workers."""
    process = subprocess.Popen([sys.executable, "-c", FAST_CHECKPOINTS, *call], stdout=subprocess.DEVNULL)
    peaks, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            peaks.append(private_bytes_of_children(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, usage = os.wait4(process.pid, 0)
    stop.set()
    watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(call)}")
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) + max(peaks)


def private_bytes_of_children(pid: int) -> int:
    total = 0
    with suppress(OSError):
        for child in (
            int(word) for file in Path(f"/proc/{pid}/task").glob("*/children") for word in file.read_text().split()
        ):
            lines = Path(f"/proc/{child}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
            total += private_bytes_of_children(child)
    return total


if __name__ == "__main__":
    main()
