"""A vocabulary of a million words in 1024 dimensions: the peak that `--dry-run` tells, and the one that is taken.

    python benchmarks/bounded.py [--words 1000000] [--dim 1024] [--methods aggregate] [--folder DIR]

The teacher is a BERT of one layer with random weights, whose pieces are syllables, so that any number of words can be
made of them; the text holds each word once, ten to a sentence. Both runs are `stillvec distill` in a process of its
own. A table that memory has no room for lies in a file.
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

UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--methods", nargs="+", default=["aggregate"])
    parser.add_argument("--folder", type=Path, help="where all is written (default: a temporary one)")
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
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *syllables, *(f"##{each}" for each in syllables)]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    size = {"hidden_size": dim, "num_hidden_layers": 1, "num_attention_heads": 8, "intermediate_size": 64}
    config = transformers.BertConfig(vocab_size=len(pieces), max_position_embeddings=128, **size)
    transformers.BertModel(config).save_pretrained(folder)


def write_text(path: Path, syllables: list[str], number: int) -> None:
    """Each word once, by chance."""
    words = ["".join(pair) for pair in itertools.islice(itertools.product(syllables, syllables), number)]
    if len(words) < number:
        sys.exit(f"there are {len(words):,} words of these syllables; give fewer --words")
    order = np.random.default_rng(0).permutation(number).tolist()
    with path.open("w", encoding="utf-8") as stream:
        for first in range(0, number, 10):
            stream.write(" ".join(words[row] for row in order[first : first + 10]) + ".\n")


def compare(folder: Path, method: str, options: argparse.Namespace) -> None:
    call = ["distill", str(folder / "text.txt"), "--teacher", str(folder / "teacher"), "--method", method]
    call += ["--min-count", "1", "--paragraphs", "lines", "--device", "cpu", "--quiet"]
    call += ["--no-statistics", "--out", str(folder / "out")]
    told = child([*call, "--dry-run"])
    planned = re.search(r"memory\D*([\d.,]+) (KB|MB|GB)", told["output"])
    if planned is None:
        sys.exit(f"no memory in what --dry-run told:\n{told['output']}")
    expected = float(planned[1].replace(",", "")) * UNITS[planned[2]] / 1e9
    taken = child(call)
    manifest = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    size = (folder / "out" / "vectors.safetensors").stat().st_size / 1e9
    print(
        f"{method}, {options.words:,} x {options.dim}: told {expected:.2f} GB in {told['seconds']:.0f} s, "
        f"taken {taken['gigabytes']:.2f} GB ({taken['gigabytes'] / expected:.2f} of it) in {taken['seconds']:.0f} s; "
        f"{manifest['read']['words']:,} words read, {size:.2f} GB of vectors",
        flush=True,
    )
    figures = f"taken {taken['gigabytes']:.2f} GB", f"told {expected:.2f} GB"
    ratios.tell(f"memory of {method}, {options.words:,} x {options.dim}", expected / taken["gigabytes"], *figures)


def child(call: list[str]) -> dict:
    """Seconds, the peak in gigabytes, and what it printed."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "stillvec", *call], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"stillvec {' '.join(call)} failed:\n{output}")
    return {"seconds": time.perf_counter() - begun, "gigabytes": used.ru_maxrss * 1024 / 1e9, "output": output}


if __name__ == "__main__":
    main()
