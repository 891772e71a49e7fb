"""stillvec merge: one result from several distilled apart."""

from __future__ import annotations

import argparse

from stillvec.cli.console import note
from stillvec.files import check_replaceable
from stillvec.pipeline import merge_results


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="DIR", help="results of one method, settings and teacher")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write")


def run(options: argparse.Namespace) -> int:
    check_replaceable(options.out, "manifest.json")
    result = merge_results(options.folders)
    result.save(options.out)
    note(f"{options.out}: {len(result.vectors):,} words x {result.vectors.dim} from {len(options.folders)} results")
    return 0
