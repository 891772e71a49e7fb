"""stillvec refine VECTORS --step NAME...: better vectors of the same words, by one step after another."""

import argparse
from pathlib import Path

from stillvec.cli import console
from stillvec.cli.list_action import List
from stillvec.cli.progress_bar import show_warnings
from stillvec.cli.renamed_flags import add_renamed
from stillvec.formats import read_manifest
from stillvec.progress import Progress
from stillvec.refinement import STEPS
from stillvec.verbs.transformation import refine


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", help="a folder of vectors, or a file in any supported format")
    parser.add_argument(
        "--step",
        action="append",
        default=[],
        metavar="NAME[:key=value,...]",
        help=f"may be repeated; one of {', '.join(STEPS)}; a key may be repeated (lexicon=A,lexicon=B)",
    )
    listing = parser.add_argument("--list-steps", action=List, const=STEPS, help="list all steps with their settings")
    add_renamed(parser, "--steps", listing)
    oov = parser.add_argument(
        "--oov",
        metavar="subword[:key=value,...]",
        help="last, fit character n-grams that give out-of-vocabulary words a vector",
    )
    add_renamed(parser, "--unknown", oov)
    parser.add_argument("--like", metavar="DIR", help="first, the steps by which these vectors were refined")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write")


def run(options: argparse.Namespace) -> int:
    with show_warnings():
        vectors = refine(
            options.vectors, options.step, oov=options.oov, like=options.like, out=options.out, progress=_print_step
        )
    size = (Path(options.out) / "vectors.safetensors").stat().st_size
    stored = read_manifest(options.out).get("stored", vectors.matrix.dtype.name)
    console.note(f"wrote {options.out}: {len(vectors):,} words x {vectors.dim}, {size / 1e6:,.1f} MB as {stored}")
    return 0


def _print_step(event: Progress) -> None:
    console.note(f"{event.stage}: {event.remark}")
