"""stillvec merge: results that were distilled separately merged into one."""

import argparse

from stillvec.cli.console import report_vectors
from stillvec.cli.flags import add_common
from stillvec.verbs.transformation import merge


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="DIR", help="results of one method, settings and teacher")
    add_common(parser, "--out")


def run(options: argparse.Namespace) -> int:
    report_vectors(options.out, merge(options.folders, out=options.out), f" from {len(options.folders)} results")
    return 0
