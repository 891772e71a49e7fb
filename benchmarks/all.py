"""Run every benchmark at a size for two cores and ten minutes, one after the other; writes bench/results.md.

    python benchmarks/all.py [--only NAME...] [--out bench/results.md]

Each benchmark is a child process that prints its own figures and records its ratios, which form the table at the top of
the page; more than 1 is better than the compared library. The defaults of the scripts are the full sizes. Benchmarks
that need data (STILLVEC_DATA, or shared/data next to the repository) are skipped without it.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gensim
import ratios

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("STILLVEC_DATA", HERE.parents[1] / "shared" / "data"))
TEXT = sorted(map(str, Path(gensim.__file__).parent.glob("test/test_data/enwiki-*.bz2")))  # the packaged text
RUNS: dict[str, tuple[str, ...]] = {
    "encode": ("--sentences", "600", "--int8"),
    "end_to_end": ("{text}", "--times", "1", "--contexts", "1", "--flags", "--max-words 1000"),
    "encode, memory": ("--memory", "--sentences", "3000"),
    "train": ("--sentences", "4000", "--words", "20000", "--seconds", "4", "--times", "1"),
    "baselines": ("{text}", "--times", "2"),
    "retrofit": ("--lexicon", "{data}/lexicons/ppdb-xl.txt", "--words", "100000"),
    "combine": ("--words", "20000"),
    "analogy": ("--questions", "{data}/analogy/google.txt", "--words", "40000"),
    "formats": ("--words", "25000", "--times", "2"),
    "use": ("--texts", "8000", "--times", "3"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*RUNS], default=[*RUNS])
    parser.add_argument("--out", type=Path, default=Path("bench/results.md"))
    options = parser.parse_args()
    page = [f"# Benchmarks\n\n{platform.processor() or platform.machine()}, {os.cpu_count()} cores, small sizes.\n"]
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "ratios"
        os.environ[ratios.PLACE] = str(place)
        for name in options.only:
            succeeded, text = run(name)
            failed += [] if succeeded else [name]
            page.append(text)
        page.insert(1, ratios.table(place) + "\n")
    print(page[1])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(page), encoding="utf-8")
    print(f"{options.out}: {len(options.only)} benchmarks" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def run(name: str) -> tuple[bool, str]:
    """Run one benchmark; return whether it succeeded, and its section of the page."""
    arguments = [part for flag in RUNS[name] for part in ([*TEXT] if flag == "{text}" else [flag.format(data=DATA)])]
    missing = [flag for flag in arguments if flag.startswith(str(DATA)) and not Path(flag).exists()]
    script = f"{name.partition(',')[0]}.py"
    call = f"benchmarks/{script} {' '.join(RUNS[name])}"
    if missing:
        print(f"{name}: skipped, {missing[0]} does not exist", flush=True)
        return True, f"## {name}\n\nSkipped: `{Path(missing[0]).name}` does not exist.\n"
    print(call, flush=True)
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, HERE / script, *arguments], capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    text = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip()
    print("\n".join(f"  {line}" for line in text.splitlines()), flush=True)
    return done.returncode == 0, f"## {name}\n\n`{call}`, {seconds:.0f} s\n\n```\n{text}\n```\n"


if __name__ == "__main__":
    sys.exit(main())
