"""stillvec analogy VECTORS A B C: what is to C as B is to A."""

import argparse

from stillvec.cli.console import print_json, table
from stillvec.cli.flags import add_common
from stillvec.formats import load
from stillvec.refinement import fuzzy_sets


def arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, "vectors")
    for name in "abc":
        parser.add_argument(name, metavar=name.upper())
    parser.add_argument("-k", type=int, default=5, metavar="N", help="number of answers (default: 5)")
    scoring = (
        "how to score answers; fuzzy: by cross-entropy, for vectors made by refine --step feature_tuples "
        "(default: 3cosadd)"
    )
    parser.add_argument("--method", choices=("3cosadd", "3cosmul", "fuzzy"), default="3cosadd", help=scoring)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    a, b, c = options.a, options.b, options.c
    vectors = load(options.vectors)
    if options.method == "fuzzy":
        answers = fuzzy_sets.analogy(vectors, a, b, c, options.k)
    else:
        answers = vectors.analogy(a, b, c, options.k, method=options.method)
    if options.json:
        plain = [{"word": word, "score": score} for word, score in answers]
        question = {"vectors": options.vectors, "question": [a, b, c], "method": options.method}
        print_json({**question, "answers": plain})
    else:
        score = "cross-entropy" if options.method == "fuzzy" else options.method
        table(f"{a} is to {b} as {c} is to", ("word", score), answers)
    return 0
