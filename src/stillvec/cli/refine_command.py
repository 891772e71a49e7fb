"""stillvec refine VECTORS --step NAME...: better vectors of the same words, by one step after another."""

from __future__ import annotations

import argparse
from pathlib import Path

from stillvec.cli import console
from stillvec.cli.list_action import List
from stillvec.cli.progress_bar import show_warnings
from stillvec.errors import UsageError
from stillvec.files import check_replaceable
from stillvec.formats import load, read_manifest, write_folder
from stillvec.refinement import STEPS, Step, read_step, refine_steps, unknown_steps


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", help="a folder of vectors, or a file in any format we read")
    parser.add_argument(
        "--step",
        action="append",
        default=[],
        metavar="NAME[:key=value,...]",
        help=f"in the order given; known are {', '.join(STEPS)}; a key may stand there twice (lexicon=A,lexicon=B)",
    )
    parser.add_argument("--steps", action=List, const=STEPS, help="tell all steps with their settings, and end")
    parser.add_argument(
        "--unknown",
        metavar="subword[:key=value,...]",
        help="last, a table of character n-grams that gives words never seen a vector: the step of that name",
    )
    parser.add_argument("--like", metavar="DIR", help="first the steps by which these vectors were refined")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write")


def run(options: argparse.Namespace) -> int:
    check_replaceable(options.out, "manifest.json")
    steps = [*_chain(options.like), *map(read_step, options.step), *unknown_steps(options.unknown)]
    if not steps:
        raise UsageError("At least one step is wanted; say --step NAME, --unknown subword or --like DIR.")
    path = Path(options.vectors)
    vectors = load(path)
    had_subwords = vectors.subwords is not None
    with show_warnings():
        for did, after in refine_steps(vectors, steps):
            vectors = after
            numbers = did.get("loss", {}) | did.get("gain", {})
            told = "".join(f", {name} {value:.4g}" for name, value in numbers.items())
            if did.get("left_out"):
                console.note(f"{did['step']} left out{told}")
            else:
                console.note(f"{did['step']}: {len(vectors):,} words x {vectors.dim}{told}")
    if had_subwords and vectors.subwords is None:
        console.note("the n-grams fitted to the old vectors do not fit these and are left out; say --unknown subword")
    write_folder(vectors, options.out, vectors.provenance)
    size = (Path(options.out) / "vectors.safetensors").stat().st_size
    kept = read_manifest(options.out).get("stored", vectors.matrix.dtype.name)
    console.note(f"wrote {options.out}: {len(vectors):,} words x {vectors.dim}, {size / 1e6:,.1f} MB as {kept}")
    return 0


def _chain(folder: str | None) -> list[Step]:
    if folder is None:
        return []
    refined = read_manifest(folder).get("refined")
    if not refined:
        raise UsageError(f"The vectors {folder} were not refined, so they have no steps to repeat; say --step NAME.")
    return [read_step(step) for step in refined]
