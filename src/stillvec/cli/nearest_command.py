"""stillvec nearest VECTORS WORD: the nearest words of a word."""

import argparse

from stillvec.cli.console import print_json, table
from stillvec.cli.flags import add_common
from stillvec.formats import load


def arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, "vectors")
    parser.add_argument("words", metavar="WORD", nargs="+", help="one table per word")
    parser.add_argument("-k", type=int, default=10, metavar="N", help="number of neighbours (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    vectors = load(options.vectors)
    neighbours = {word: vectors.nearest(word, options.k) for word in options.words}  # before any output
    if options.json:
        plain = {word: [{"word": w, "cosine": c} for w, c in near] for word, near in neighbours.items()}
        print_json({"vectors": options.vectors, "nearest": plain})
        return 0
    for word, near in neighbours.items():
        table(f"nearest to {word}", ("word", "cosine"), near)
    return 0
