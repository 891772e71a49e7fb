"""stillvec merge: results that were distilled separately merged into one."""

import argparse

from stillvec.cli.console import report_vectors
from stillvec.cli.flags import add_common
from stillvec.cli.progress_bar import show_warnings
from stillvec.verbs.transformation import merge


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="DIR", help="results of one method, settings and teacher")
    add_common(parser, "--out", "--force")


def run(options: argparse.Namespace) -> int:
    with show_warnings():
        vectors = merge(options.folders, out=options.out, force=options.force)
    report_vectors(options.out, vectors, f" from {len(options.folders)} results")
    return 0
