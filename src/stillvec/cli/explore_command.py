"""stillvec explore A [B C]: explore vectors on a page, served on this machine or exported as one file."""

import argparse
from pathlib import Path
from typing import Any

from stillvec.cli.console import note, note_now
from stillvec.cli.progress_bar import show_events
from stillvec.exploration import DEFAULT_PROJECTIONS, PROJECTIONS, create_explorer, explore, export_steps
from stillvec.progress import drain

_PROJECTIONS_HELP = f"maps to offer, the first is shown: {', '.join(PROJECTIONS)} (default: all; exported: tsne pca)"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("vectors", metavar="VECTORS", nargs="+", help="one to three folders or files of vectors")
    add("--port", type=int, default=0, metavar="N", help="port to serve the page on (default: any free port)")
    add("--no-browser", action="store_true", help="print the address without opening a browser")
    add("--corpus", nargs="+", default=(), metavar="FILE", help="text to show example sentences from")
    add("--lexicon", metavar="SOURCE", help="show relations and parts of speech from wordnet, a folder or a file")
    add("--layers", nargs="+", default=(), metavar="VECTORS", help="also show neighbours in the layers of a teacher")
    add("--columns", type=Path, metavar="FILE", help="CSV, TSV or Parquet with a column word, to colour and filter by")
    add("--projections", nargs="+", default=(), choices=[*PROJECTIONS], metavar="NAME", help=_PROJECTIONS_HELP)
    add("--index", metavar="DIR", help="search the documents of an index (stillvec index); not with --export")
    add("--export", type=Path, metavar="FILE", help="write a page that needs no server, then exit")
    add("--words", type=int, default=5000, metavar="N", help="number of words in the exported page (default: 5000)")
    add("--quiet", action="store_true", help="show no progress")


def run(options: argparse.Namespace) -> int:
    names = ("corpus", "lexicon", "layers", "columns", "index")
    sources: dict[str, Any] = {name: getattr(options, name) for name in names}
    if options.export is None:
        sources["projections"] = options.projections
        explore(options.vectors, **sources, port=options.port, open_browser=not options.no_browser, notify=note_now)
        return 0
    with show_events(quiet=options.quiet) as listener:
        explorer = create_explorer(options.vectors, **sources, projections=options.projections or DEFAULT_PROJECTIONS)
        n_words = drain(export_steps(explorer, options.export, options.words), listener)
    size = options.export.stat().st_size / 1e6
    note(f"Wrote {options.export}: {n_words:,} words, {size:.1f} MB; it needs no server")
    return 0
