"""stillvec search DIR QUERY: the best passages of an index for a query."""

import argparse
import dataclasses
import sys
from collections.abc import Sequence

from stillvec.cli.console import note, show, width
from stillvec.cli.flags import add_json
from stillvec.cli.terminal_text import escape_controls
from stillvec.search import METHODS, Hit, SearchIndex


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("index", metavar="DIR", help="the folder of an index (stillvec index)")
    add("query", nargs="+", metavar="QUERY", help="a text; several words may be given without quotes")
    add("-k", "--k", type=int, default=10, metavar="N", help="number of hits (default: 10)")
    method = "vectors: cosines of text vectors; bm25: the same words; hybrid: both (default: %(default)s)"
    add("--method", choices=METHODS, default=METHODS[0], help=method)
    add("--unique", action="store_true", help="only the best passage of each document")
    add("--exact", action="store_true", help="compare with every passage even if there is a graph")
    add("--full", action="store_true", help="print whole passages instead of snippets")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    query = " ".join(options.query)
    index = SearchIndex.load(options.index)
    hits = index.search(query, options.k, method=options.method, unique=options.unique, exact=options.exact)
    found = [dataclasses.asdict(hit) for hit in hits]
    values = {"index": options.index, "query": query, "method": options.method, "hits": found}
    show(values, options.json, lambda: _print_hits(hits, query, options.full), indent=None)
    return 0


def _print_hits(hits: Sequence[Hit], query: str, full: bool) -> None:
    if not hits:
        note(f"Nothing found for {query!r}: no passage contains its words or similar ones.")
    for number, hit in enumerate(hits, 1):
        _print(number, hit, full)


def _print(number: int, hit: Hit, full: bool) -> None:
    note(f"{number:>3}  {hit.score:.3f}  {hit.id}  passage {hit.position + 1}")
    for line in hit.text.splitlines() if full else [hit.snippet]:
        _print_snippet(line, () if full else hit.highlights)


def _print_snippet(text: str, highlights: tuple[tuple[int, int], ...]) -> None:
    """Indented and wrapped; on a terminal with the words of the query in bold."""
    if not sys.stdout.isatty():
        note(f"     {text}")
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    styled = Text()
    end = 0
    for start, stop in highlights:
        styled.append(escape_controls(text[end:start]))
        styled.append(escape_controls(text[start:stop]), "bold")
        end = stop
    styled.append(escape_controls(text[end:]))
    Console(width=width()).print(Padding(styled, (0, 0, 0, 5)))
