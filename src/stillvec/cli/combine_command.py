"""stillvec combine A B ...: several sets of vectors combined into one."""

import argparse

from stillvec.cli.console import note
from stillvec.cli.list_action import List
from stillvec.cli.renamed_flags import add_renamed
from stillvec.combination import COMBINERS
from stillvec.verbs.transformation import combine


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "vectors", nargs="+", metavar="VECTORS", help="folders of vectors, or files in any supported format"
    )
    parser.add_argument(
        "--method",
        required=True,
        metavar="NAME[:key=value,...]",
        help=f"one of {', '.join(COMBINERS)}, as in svd:dim=100,words=intersection",
    )
    listing = parser.add_argument("--list-methods", action=List, const=COMBINERS, help="list all methods with settings")
    add_renamed(parser, "--methods", listing)
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write")


def run(options: argparse.Namespace) -> int:
    vectors = combine(options.vectors, options.method, out=options.out)
    sets = f"{len(options.vectors)} sets with {vectors.provenance['common_words']:,} words in common"
    note(f"{options.out}: {len(vectors):,} words x {vectors.dim} from {sets}")
    return 0
