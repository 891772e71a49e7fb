"""stillvec explore A [B C]: vectors on a page of this machine, or on one that needs no server."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stillvec.cli.console import note
from stillvec.cli.progress_bar import ProgressEvent, watch
from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.exploration import MOST_SETS, Explorer, Server, exported_page, exporting
from stillvec.exploration.examples import ExampleReader
from stillvec.exploration.relations import LexiconRelations
from stillvec.files import atomic_file
from stillvec.formats import load
from stillvec.lexicons import read_lexicon
from stillvec.vectors import WordVectors


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", nargs="+", help="one to three folders or files of vectors")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="of the page (default: one that is free)")
    parser.add_argument("--no-browser", action="store_true", help="only say where the page is")
    parser.add_argument(
        "--corpus", nargs="+", default=(), metavar="FILE", help="sentences with a word are shown from it"
    )
    parser.add_argument(
        "--lexicon", metavar="SOURCE", help="relations and parts of speech: wordnet, a folder or a file"
    )
    parser.add_argument(
        "--layers",
        nargs="+",
        default=(),
        metavar="VECTORS",
        help="vectors of a teacher's layers, for the card of a word",
    )
    parser.add_argument("--export", type=Path, metavar="FILE", help="write a page that needs no server, and end")
    parser.add_argument("--words", type=int, default=5000, metavar="N", help="of the page written (default: 5000)")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace) -> int:
    if len(options.vectors) > MOST_SETS:
        raise UsageError(
            f"One to {MOST_SETS} sets of vectors are looked at, and {len(options.vectors)} came; leave out some."
        )
    if options.export is not None and options.export.is_dir():
        raise UsageError(f"The output {options.export} is a folder, and a file is to be written; give another name.")
    corpus = Corpus(*options.corpus) if options.corpus else None
    sets = _named(options.vectors)
    layers = _named([*options.layers]) if options.layers else {}
    explorer = Explorer(
        sets, _relations(options.lexicon, sets.values()), ExampleReader(corpus) if corpus else None, layers
    )
    return _serve(explorer, options) if options.export is None else _export(explorer, options)


def _named(paths: list[str]) -> dict[str, WordVectors]:
    """By the last part of the path, or by as many as tell them apart."""
    parts = [Path(path).resolve().parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-depth:]) for each in parts]
        if len({*names}) == len(names):
            return {name: load(path) for name, path in zip(names, paths, strict=True)}
    raise UsageError("The same vectors are named twice, and they would be looked at beside themselves; leave one out.")


def _relations(source: str | None, sets: Iterable[WordVectors]) -> LexiconRelations | None:
    return (
        None
        if source is None
        else LexiconRelations(read_lexicon(source), (word for each in sets for word in each.words))
    )


def _serve(explorer: Explorer, options: argparse.Namespace) -> int:
    with Server(explorer, options.port) as server:
        note(f"{server.address}: the page; Ctrl-C ends it")
        sys.stdout.flush()
        if not options.no_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            note("Ended.")
    return 0


def _export(explorer: Explorer, options: argparse.Namespace) -> int:
    made: list[dict[str, Any]] = []

    def steps() -> Iterator[ProgressEvent]:
        for state in exporting(explorer, options.words):
            if isinstance(state, dict):
                made.append(state)
            else:
                yield state

    watch(steps(), quiet=options.quiet)
    page = exported_page(made[0])
    with atomic_file(options.export) as part:
        part.write_text(page, "utf-8")
    words = max(each["words"] for each in made[0]["sets"])
    note(f"{options.export}: {words:,} words, {len(page.encode()) / 1e6:.1f} MB; it needs no server")
    return 0
