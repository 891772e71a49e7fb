"""stillvec encode VECTORS [TEXTS] --out FILE.npy: the vectors of texts, one row per text."""

import argparse
from itertools import islice
from pathlib import Path

import numpy as np

from stillvec.cli.console import note
from stillvec.cli.flags import add_common
from stillvec.cli.text_input import FIELD_HELP, TEXTS_HELP, read_text_arguments
from stillvec.errors import UsageError
from stillvec.files import atomic_file, check_not_input
from stillvec.files.folder_layout import check_replaceable
from stillvec.formats import load

_BLOCK = 4096  # texts at once


def arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, "vectors")
    add = parser.add_argument
    add("texts", nargs="*", default=[], metavar="TEXTS", help=TEXTS_HELP)
    add("--out", required=True, type=Path, metavar="FILE.npy", help="the NumPy array to write, one row per text")
    add_common(parser, "--force")
    add("--normalize", action="store_true", help="scale rows to unit length, for cosines")
    add("--sif", type=float, metavar="A", help="weight words by A / (A + frequency), such as 1e-3 (default: equally)")
    add("--dimensions", type=int, metavar="N", help="only the first N dimensions")
    add("--text-field", default="text", metavar="NAME", help=FIELD_HELP)


def run(options: argparse.Namespace) -> int:
    if options.out.suffix != ".npy":
        raise UsageError.expected("a file name that ends in .npy", str(options.out), where="--out")
    check_not_input(options.out, [options.vectors, *options.texts])
    check_replaceable(options.out, None, force=options.force)
    vectors = load(options.vectors)
    settings = {"normalize": options.normalize, "sif": options.sif, "dimensions": options.dimensions}
    texts = read_text_arguments(options.texts, options.text_field)
    rows = [vectors.encode(block, **settings) for block in iter(lambda: [*islice(texts, _BLOCK)], [])]
    if not rows:
        raise UsageError.expected("texts to encode", "none")
    matrix = np.concatenate(rows)
    with atomic_file(options.out) as part, part.open("wb") as stream:
        np.save(stream, matrix)
    n_empty = int(len(matrix) - np.any(matrix, axis=1).sum())
    zeros = f"; zero rows, for texts without a known word: {n_empty:,}" if n_empty else ""
    note(f"Wrote {options.out}: {len(matrix):,} text{'s' * (len(matrix) != 1)} x {matrix.shape[1]}{zeros}")
    return 0
