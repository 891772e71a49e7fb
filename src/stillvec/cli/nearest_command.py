"""stillvec nearest VECTORS WORD: the nearest words of a word, or of a set of features."""

import argparse
import sys
from collections.abc import Sequence

from stillvec.cli.console import note, print_json, table
from stillvec.cli.flags import add_common
from stillvec.errors import UsageError
from stillvec.formats import load
from stillvec.refinement.set_query import query
from stillvec.search.sense_neighbours import find_near
from stillvec.vectors import WordVectors

_MANY_FORMS = 3  # neighbours that are forms of others: from here on --group is suggested


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
    group = "one entry per word, with its inflections in brackets and those of WORD in the title"
    parser.add_argument("--group", action="store_true", help=group)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    if not options.words and not options.query:
        raise UsageError.expected("a word or --query", "neither")
    vectors = load(options.vectors)
    # all of them before any output
    groups = {word: vectors.nearest(word, options.k, group=True) for word in options.words if options.group}
    neighbours = {word: vectors.nearest(word, options.k) for word in options.words if not options.group}
    sets = {text: query(vectors, text, options.k, scaled=not options.unscaled) for text in options.query}
    if options.json:
        near = {word: [group._asdict() for group in found] for word, found in groups.items()}
        values = {"vectors": options.vectors, "nearest": near | _name_columns(neighbours, "cosine")}
        found_senses = {word: _describe_senses(vectors, word, options.k) for word in options.words}
        values |= {"senses": found_senses} if any(found_senses.values()) else {}
        values |= {"forms": {word: found.forms for word, found in groups.items()}} if groups else {}
        print_json(values | ({"queries": _name_columns(sets, "cross_entropy")} if sets else {}))
        return 0
    for word, found in groups.items():
        rows = [(_bracket(head, forms), cosine) for head, cosine, forms in found]
        table(f"nearest to {_bracket(word, found.forms)}", ("word", "cosine"), rows)
    for results, measure in ((neighbours, "cosine"), (sets, "cross-entropy")):
        for name, words in results.items():
            table(f"nearest to {name}", ("word", measure), words)
    for word in options.words:
        _print_senses(vectors, word, options.k)
    if sys.stdout.isatty():
        _suggest_groups(vectors, neighbours)
    return 0


def _bracket(word: str, forms: Sequence[str]) -> str:
    return f"{word} ({', '.join(forms)})" if forms else word


def _print_senses(vectors: WordVectors, word: str, k: int) -> None:
    """The neighbours and examples of each sense of a word that has several."""
    found = vectors.senses.find(word) if vectors.senses is not None else []
    for sense in found:
        near = find_near(vectors, sense, k)
        title = f"{sense.word}, sense {sense.number} of {len(found)}, {sense.share:.0%} of its contexts"
        table(title, ("word", "cosine"), near)
        for example in sense.examples:
            note(f"  “{example}”")


def _describe_senses(vectors: WordVectors, word: str, k: int) -> list[dict[str, object]]:
    found = vectors.senses.find(word) if vectors.senses is not None else []
    return [
        {"share": sense.share, "examples": sense.examples, "nearest": _name_columns({word: near}, "cosine")[word]}
        for sense in found
        for near in [find_near(vectors, sense, k)]
    ]


def _suggest_groups(vectors: WordVectors, neighbours: dict[str, list[tuple[str, float]]]) -> None:
    """A note, if many of the neighbours of a word are inflections."""
    for word, near in neighbours.items():
        n_forms = len(near) - len(vectors.inflections.fold(near, len(near), [word])[0])
        if n_forms >= _MANY_FORMS:
            note(f"{n_forms} of the {len(near)} words near {word} are inflections; --group shows one entry per word")


def _name_columns(results: dict[str, list[tuple[str, float]]], measure: str) -> dict[str, list[dict[str, object]]]:
    return {name: [{"word": word, measure: value} for word, value in near] for name, near in results.items()}
