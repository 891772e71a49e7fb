"""stillvec nearest VECTORS WORD: the nearest words of a word, or of a set of features."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from stillvec.cli.console import note, show, table
from stillvec.cli.flags import add_common, add_json
from stillvec.errors import UsageError
from stillvec.formats import load
from stillvec.refinement.set_query import query
from stillvec.search.sense_neighbours import find_near
from stillvec.vectors import WordVectors
from stillvec.vocabulary.inflections import NeighbourGroups

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
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    if not options.words and not options.query:
        raise UsageError.expected("a word or --query", "neither")
    vectors = load(options.vectors)
    # all of them before any output
    groups = {word: vectors.nearest(word, options.k, group=True) for word in options.words if options.group}
    neighbours = {word: vectors.nearest(word, options.k) for word in options.words if not options.group}
    sets = {text: query(vectors, text, options.k, scaled=not options.unscaled) for text in options.query}
    results = _Results(vectors, options.words, options.k, groups, neighbours, sets)
    values = {"vectors": options.vectors} | _describe(results) if options.json else {}
    show(values, options.json, lambda: _print_tables(results), indent=None)
    return 0


class _Results(NamedTuple):
    vectors: WordVectors
    words: list[str]
    k: int
    groups: dict[str, NeighbourGroups]  # with --group
    neighbours: dict[str, list[tuple[str, float]]]  # without
    sets: dict[str, list[tuple[str, float]]]  # of --query


def _describe(results: _Results) -> dict[str, Any]:
    near = {word: [group._asdict() for group in found] for word, found in results.groups.items()}
    values: dict[str, Any] = {"nearest": near | _name_columns(results.neighbours, "cosine")}
    senses = {word: _describe_senses(results.vectors, word, results.k) for word in results.words}
    values |= {"senses": senses} if any(senses.values()) else {}
    values |= {"forms": {word: found.forms for word, found in results.groups.items()}} if results.groups else {}
    return values | ({"queries": _name_columns(results.sets, "cross_entropy")} if results.sets else {})


def _print_tables(results: _Results) -> None:
    for word, found in results.groups.items():
        rows = [(_bracket(head, forms), cosine) for head, cosine, forms in found]
        table(f"nearest to {_bracket(word, found.forms)}", ("word", "cosine"), rows)
    for by_name, measure in ((results.neighbours, "cosine"), (results.sets, "cross-entropy")):
        for name, words in by_name.items():
            table(f"nearest to {name}", ("word", measure), words)
    for word in results.words:
        _print_senses(results.vectors, word, results.k)
    if sys.stdout.isatty():
        _suggest_groups(results.vectors, results.neighbours)


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
