"""The whole command from the shell prompt to the folder, by phase, beside the bare forward pass over what was read.

    python benchmarks/end_to_end.py CORPUS... [--teachers minilm,...] [--times N] [--cold N] [--first N]
                                    [--copies N] [--contexts N] [--flags "--max-words 300"] [--out FILE]

Runs `stillvec distill CORPUS --teacher T` in a process of its own, --times times for each teacher, and prints a row for
each run: the seconds of the process, where they went by its own account, and the seconds of the bare pass: the tokens
that were read, at the speed of the model alone on batches of selected sentences that are on its device. A run on the
first paragraphs comes before them and is not measured: it leaves bytecode and compiled kernels behind, as any earlier
run would. --cold N adds N runs without bytecode. With --copies N the text is repeated N times, each time with other
long words, so that caches and the vocabulary do not help.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import ratios
from encode import _bare, _ready

from stillvec.corpus import Corpus, split_sentences
from stillvec.encoding import BatchBudget
from stillvec.pipeline.sentence_stream import split_batches
from stillvec.teachers import load_teacher
from stillvec.vocabulary import Vocabulary

HEADERS = {
    "end-to-end": "| teacher | words | bytecode | seconds | imports | loading | counting | reading | templates "
    "| computing | writing | bare pass | bare / whole |"
}
_PHASES = ("imports", "loading", "counting", "reading", "templates", "computing", "writing")
_LONG = re.compile(r"[a-z]{7,}")
_SAMPLE = 60_000  # sentences for the bare pass, at most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--teachers", default="minilm")
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--cold", type=int, default=0, help="runs without bytecode, after the others")
    parser.add_argument("--first", type=int, default=3000, help="paragraphs of the run that is not measured; 0: none")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--contexts", default="20")
    parser.add_argument("--flags", default="", help="more flags of distill, separated by spaces")
    parser.add_argument("--out", type=Path, help="append the rows to this file, each as soon as it is measured")
    options = parser.parse_args()
    print(HEADERS["end-to-end"])
    print("|---" * HEADERS["end-to-end"].count(" | ") + "|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        files = options.corpus if options.copies == 1 else [_copy(options.corpus, options.copies, Path(folder))]
        flags = ["--contexts", options.contexts, *options.flags.split()]
        for name in options.teachers.split(","):
            if options.first:
                first = Path(folder) / "first.txt"
                first.write_text("\n\n".join(islice(Corpus(*files).paragraphs(), options.first)), encoding="utf-8")
                _run(name, [str(first)], flags, Path(folder) / "out")
            measured = [(*_run(name, files, flags, Path(folder) / "out"), "yes") for _ in range(options.times)]
            nothing = {"PYTHONPYCACHEPREFIX": str(Path(folder) / "none"), "PYTHONDONTWRITEBYTECODE": "1"}
            for _ in range(options.cold):
                measured.append((*_run(name, files, flags, Path(folder) / "out", nothing), "no"))
            rate = _bare_rate(name, files)
            for seconds, phases, manifest, bytecode in measured:
                bare = manifest["read"]["pieces"] / rate
                times = " | ".join(f"{phases.get(phase, 0.0):.1f}" for phase in _PHASES)
                n_words = f"{manifest['corpus']['words']:,} | {bytecode}"
                row = f"| {name} | {n_words} | {seconds:.1f} | {times} | {bare:.1f} | {bare / seconds:.2f} |"
                print(row, flush=True)
                if options.out:
                    with options.out.open("a", encoding="utf-8") as stream:
                        stream.write(row + "\n")
            best = min(seconds for seconds, *_ in measured)
            ratios.record(f"whole command, {name}", bare / best, f"{best:.1f} s", f"bare pass {bare:.1f} s")


def _run(
    teacher: str, files: list[str], flags: list[str], out: Path, given: Mapping[str, str] = {}
) -> tuple[float, dict[str, float], dict]:
    """Seconds of the process, seconds by phase, and the manifest; `given` are variables of the environment."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "stillvec", "distill", *files, "--teacher", teacher, *flags, "--out", str(out)]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"RANK": "0"} | given)
    seconds = time.perf_counter() - begun
    if done.returncode:
        sys.exit(done.stderr)
    line = next(line for line in done.stdout.splitlines() if line.startswith("Took "))
    print(f"{teacher}: {seconds:.1f} s; {line}", file=sys.stderr, flush=True)
    phases = {name: float(value) for name, value in re.findall(r"([a-z]+) ([\d.]+)", line.partition(":")[2])}
    return seconds, phases, json.loads((out / "manifest.json").read_text("utf-8"))


def _bare_rate(name: str, files: list[str]) -> float:
    """Tokens per second of the model alone, the better of two runs."""
    teacher = load_teacher(name)
    budget = BatchBudget.for_teacher(teacher)
    limit = _SAMPLE if teacher.device.type == "cuda" else 400
    sentences: list[str] = []
    for paragraphs in split_batches(Corpus(*files).paragraphs(), 100):
        sentences += [sentence for paragraph in paragraphs for sentence in split_sentences(paragraph)][::4]
        if len(sentences) >= limit:
            break
    ready = _ready(teacher, sentences[:limit], Vocabulary(["the"]), budget)
    n_tokens = sum(len(batch.token_index) for batch in ready)
    _bare(teacher, ready)  # warm
    return n_tokens / min(_bare(teacher, ready) for _ in range(2))


def _copy(files: list[str], copies: int, folder: Path) -> str:
    """The text several times, each time with the last letter of long words replaced by another one."""
    parts = [folder / f"copy-{number}.txt" for number in range(copies)]
    with ProcessPoolExecutor() as pool:
        all(pool.map(_write_copy, [files] * copies, range(copies), parts))
    path = folder / "copies.txt"
    with path.open("wb") as stream:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, stream, 1 << 24)
            part.unlink()
    return str(path)


def _write_copy(files: list[str], copy: int, path: Path) -> bool:
    with path.open("w", encoding="utf-8") as stream:
        for paragraphs in split_batches(Corpus(*files).paragraphs(), 1000):
            text = "\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
            stream.write((_LONG.sub(lambda word: _change(word[0], copy), text) if copy else text) + "\n")
    return True


def _change(word: str, copy: int) -> str:
    return word[:-1] + chr(ord("a") + (ord(word[-1]) - ord("a") + copy) % 26)


if __name__ == "__main__":
    main()
