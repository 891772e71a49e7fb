"""stillvec analogy VECTORS A B C: what is to C as B is to A."""

import argparse

from stillvec.cli.console import show, table
from stillvec.cli.flags import add_common, add_json
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
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    a, b, c = options.a, options.b, options.c
    vectors = load(options.vectors)
    if options.method == "fuzzy":
        answers = fuzzy_sets.analogy(vectors, a, b, c, options.k)
    else:
        answers = vectors.analogy(a, b, c, options.k, method=options.method)
    plain = [{"word": word, "score": score} for word, score in answers]
    values = {"vectors": options.vectors, "question": [a, b, c], "method": options.method, "answers": plain}
    columns = ("word", "cross-entropy" if options.method == "fuzzy" else options.method)
    show(values, options.json, lambda: table(f"{a} is to {b} as {c} is to", columns, answers), indent=None)
    return 0
