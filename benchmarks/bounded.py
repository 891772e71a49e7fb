"""A vocabulary of a million words in 1024 dimensions: the peak memory that `--dry-run` estimates, and the actual peak.

    python benchmarks/bounded.py [--words 1000000] [--dim 1024] [--methods aggregate] [--folder DIR] [--leave GB]

The teacher is a one-layer BERT with random weights whose tokens are syllables, so that any number of words can be
generated; the text contains each word once, ten per sentence. Both runs are `stillvec distill` in a child process. With
--leave, the run is repeated while another process holds all memory but this much: tables are then memory-mapped files,
and the vectors must be identical.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import ratios
import transformers

from stillvec.memory import free_memory

UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--methods", nargs="+", default=["aggregate"])
    parser.add_argument("--folder", type=Path, help="folder for all files (default: a temporary one)")
    parser.add_argument("--leave", type=float, metavar="GB", help="repeat the run with this much free memory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        syllables = [*map("".join, itertools.product("bcdfghjklmnpqrstvwxz", "aeiou", "bdgklmnrst"))]
        write_teacher(folder / "teacher", syllables, options.dim)
        write_text(folder / "text.txt", syllables, options.words)
        for method in options.methods:
            compare(folder, method, options)


def write_teacher(folder: Path, syllables: list[str], dim: int) -> None:
    folder.mkdir()
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        ".",
        *syllables,
        *(f"##{syllable}" for syllable in syllables),
    ]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    size = {"hidden_size": dim, "num_hidden_layers": 1, "num_attention_heads": 8, "intermediate_size": 64}
    config = transformers.BertConfig(vocab_size=len(pieces), max_position_embeddings=128, **size)
    transformers.BertModel(config).save_pretrained(folder)


def write_text(path: Path, syllables: list[str], number: int) -> None:
    """Write each word once, in random order."""
    words = ["".join(pair) for pair in itertools.islice(itertools.product(syllables, syllables), number)]
    if len(words) < number:
        sys.exit(f"only {len(words):,} words can be made of these syllables; pass fewer --words")
    order = np.random.default_rng(0).permutation(number).tolist()
    with path.open("w", encoding="utf-8") as stream:
        for first in range(0, number, 10):
            stream.write(" ".join(words[row] for row in order[first : first + 10]) + ".\n")


def compare(folder: Path, method: str, options: argparse.Namespace) -> None:
    call = ["distill", str(folder / "text.txt"), "--teacher", str(folder / "teacher"), "--method", method]
    call += ["--min-count", "1", "--paragraphs", "lines", "--device", "cpu", "--quiet"]
    call += ["--no-statistics", "--out", str(folder / "out"), "--force"]
    plan = run_child([*call, "--dry-run"])
    planned = re.search(r"memory\D*([\d.,]+) (KB|MB|GB)", plan["output"])
    if planned is None:
        sys.exit(f"no memory estimate in the output of --dry-run:\n{plan['output']}")
    expected = float(planned[1].replace(",", "")) * UNITS[planned[2]] / 1e9
    used = run_child(call)
    manifest = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    size = (folder / "out" / "vectors.safetensors").stat().st_size / 1e9
    print(
        f"{method}, {options.words:,} x {options.dim}: estimated {expected:.2f} GB in {plan['seconds']:.0f} s, "
        f"used {used['gigabytes']:.2f} GB ({used['gigabytes'] / expected:.2f} of it) in {used['seconds']:.0f} s; "
        f"{manifest['read']['words']:,} words read, {size:.2f} GB of vectors",
        flush=True,
    )
    figures = f"used {used['gigabytes']:.2f} GB", f"estimated {expected:.2f} GB"
    ratios.record(f"memory of {method}, {options.words:,} x {options.dim}", expected / used["gigabytes"], *figures)
    if options.leave is not None:
        compare_with_little_memory(folder, call, used, options.leave)


def compare_with_little_memory(folder: Path, call: list[str], alone: dict, left: float) -> None:
    """Repeat the run with little free memory."""
    size = int((free_memory() - left * 1e9) / 8)
    if size < 0:
        sys.exit(f"less than {left} GB of memory are free; pass a smaller --leave")
    holding = f"import numpy; held = numpy.ones({size}); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            used = run_child([*call[:-1], str(folder / "crowded")])
        finally:
            holder.kill()
    one, other = ((folder / out / "vectors.safetensors").read_bytes() for out in ("out", "crowded"))
    print(
        f"with {left} GB free: {used['in files']:.2f} GB in files, {used['anonymous']:.2f} GB of other memory "
        f"(before: {alone['in files']:.2f} and {alone['anonymous']:.2f}), {used['seconds']:.0f} s for "
        f"{alone['seconds']:.0f}; the vectors are {'identical' if one == other else 'NOT identical'}"
    )
    if one != other:
        sys.exit(1)


def run_child(call: list[str]) -> dict:
    """Run stillvec; return seconds, peak memory (total, anonymous, tables in files; in GB) and the output."""
    begun = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, "-m", "stillvec", *call], stdout=output)
        anonymous = in_files = 0.0
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            anonymous, in_files = max(anonymous, _anonymous(process.pid)), max(in_files, _in_files(process.pid))
            time.sleep(0.1)
        output.seek(0)
        printed = output.read()
    if ended[1]:
        sys.exit(f"stillvec {' '.join(call)} failed:\n{printed}")
    peak = ended[2].ru_maxrss * 1024 / 1e9
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "gigabytes": peak, "anonymous": anonymous, "in files": in_files, "output": printed}


def _anonymous(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    match = re.search(r"RssAnon:\s+(\d+)", status)
    return int(match[1]) * 1024 / 1e9 if match else 0.0


def _in_files(process: int) -> float:
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    spans = [line.split()[0].split("-") for line in lines if "/table-" in line]
    return sum(int(end, 16) - int(begin, 16) for begin, end in spans) / 1e9


if __name__ == "__main__":
    main()
