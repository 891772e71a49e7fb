"""stillvec combine A B ...: several sets of vectors combined into one."""

import argparse

from stillvec.cli.console import report_vectors
from stillvec.cli.flags import List, add_common, add_renamed
from stillvec.cli.progress_bar import show_warnings
from stillvec.combination import COMBINERS
from stillvec.verbs.transformation import combine


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("vectors", nargs="+", metavar="VECTORS", help="folders of vectors, or files in any supported format")
    names = f"one of {', '.join(COMBINERS)}, as in svd:dim=100,words=intersection"
    add("--method", required=True, metavar="NAME[:key=value,...]", help=names)
    listing = add("--list-methods", action=List, const=COMBINERS, help="list all methods with settings")
    add_renamed(parser, "--methods", listing)
    add_common(parser, "--out", "--force")


def run(options: argparse.Namespace) -> int:
    with show_warnings():
        vectors = combine(options.vectors, options.method, out=options.out, force=options.force)
    common = f"{vectors.provenance['common_words']:,} words in common"
    report_vectors(options.out, vectors, f" from {len(options.vectors)} sets with {common}")
    return 0
