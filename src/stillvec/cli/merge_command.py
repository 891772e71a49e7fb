"""stillvec merge: results that were distilled separately merged into one."""

import argparse

from stillvec.cli.console import note
from stillvec.verbs.transformation import merge


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="DIR", help="results of one method, settings and teacher")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write")


def run(options: argparse.Namespace) -> int:
    vectors = merge(options.folders, out=options.out)
    note(f"{options.out}: {len(vectors):,} words x {vectors.dim} from {len(options.folders)} results")
    return 0
