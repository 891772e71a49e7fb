"""stillvec nearest VECTORS WORD: the nearest words of a word, or of a set of features."""

import argparse

from stillvec.cli.console import print_json, table
from stillvec.cli.flags import add_common
from stillvec.errors import UsageError
from stillvec.formats import load
from stillvec.refinement.set_query import query


def arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, "vectors")
    parser.add_argument("words", metavar="WORD", nargs="*", help="one table per word")
    sets = (
        "words as sets of features, in vectors made by refine --step feature_tuples: ~ complement, & intersection, "
        "| union, + disjoint union, - difference, parentheses; ranked by cross-entropy; may be repeated"
    )
    parser.add_argument("--query", action="append", default=[], metavar="'A & B - C'", help=sets)
    unscaled = "do not scale the sets of a query, as in the paper"
    parser.add_argument("--unscaled", action="store_true", help=unscaled)
    parser.add_argument("-k", type=int, default=10, metavar="N", help="number of neighbours (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    if not options.words and not options.query:
        raise UsageError.expected("a word or --query", "neither")
    vectors = load(options.vectors)
    neighbours = {word: vectors.nearest(word, options.k) for word in options.words}  # before any output
    sets = {text: query(vectors, text, options.k, scaled=not options.unscaled) for text in options.query}
    if options.json:
        values = {"vectors": options.vectors, "nearest": _name_columns(neighbours, "cosine")}
        print_json(values | ({"queries": _name_columns(sets, "cross_entropy")} if sets else {}))
        return 0
    for results, measure in ((neighbours, "cosine"), (sets, "cross-entropy")):
        for name, near in results.items():
            table(f"nearest to {name}", ("word", measure), near)
    return 0


def _name_columns(results: dict[str, list[tuple[str, float]]], measure: str) -> dict[str, list[dict[str, object]]]:
    return {name: [{"word": word, measure: value} for word, value in near] for name, near in results.items()}
