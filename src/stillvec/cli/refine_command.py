"""stillvec refine VECTORS --step NAME...: better vectors of the same words, by one step after another."""

import argparse
from pathlib import Path

from stillvec.cli.console import note, report_vectors
from stillvec.cli.flags import List, add_common, add_oov, add_renamed
from stillvec.cli.progress_bar import show_warnings
from stillvec.formats import read_manifest
from stillvec.progress import Progress
from stillvec.refinement import STEPS
from stillvec.verbs.transformation import refine


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_common(parser, "vectors")
    names = f"may be repeated; one of {', '.join(STEPS)}; a key may be repeated (lexicon=A,lexicon=B)"
    add("--step", action="append", default=[], metavar="NAME[:key=value,...]", help=names)
    listing = add("--list-steps", action=List, const=STEPS, help="list all steps with their settings")
    add_renamed(parser, "--steps", listing)
    add_oov(parser, "finally, add vectors for unknown words: subword (character n-grams) or attributes (of a lexicon)")
    add("--like", metavar="DIR", help="first repeat the refinement steps recorded in DIR")
    add_common(parser, "--out", "--force")


def run(options: argparse.Namespace) -> int:
    settings = {name: getattr(options, name) for name in ("oov", "like", "out", "force")}
    with show_warnings():
        vectors = refine(options.vectors, options.step, **settings, progress=_print_step)
    size = (Path(options.out) / "vectors.safetensors").stat().st_size
    stored = read_manifest(options.out).get("stored", vectors.matrix.dtype.name)
    report_vectors(options.out, vectors, f", {size / 1e6:,.1f} MB as {stored}")
    return 0


def _print_step(event: Progress) -> None:
    note(f"{event.stage}: {event.remark}")
