"""stillvec explore A [B C]: explore vectors on a page, served on this machine or exported as one file."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from stillvec.cli.console import note
from stillvec.cli.progress_bar import watch
from stillvec.exploration import create_explorer, explore, export_steps
from stillvec.progress import Progress


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", nargs="+", help="one to three folders or files of vectors")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port to serve the page on (default: any free port)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")
    parser.add_argument("--corpus", nargs="+", default=(), metavar="FILE", help="text to show example sentences from")
    parser.add_argument(
        "--lexicon", metavar="SOURCE", help="show relations and parts of speech from wordnet, a folder or a file"
    )
    parser.add_argument(
        "--layers", nargs="+", default=(), metavar="VECTORS", help="also show neighbours in the layers of a teacher"
    )
    parser.add_argument("--export", type=Path, metavar="FILE", help="write a page that needs no server, then exit")
    parser.add_argument(
        "--words", type=int, default=5000, metavar="N", help="number of words in the exported page (default: 5000)"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(options: argparse.Namespace) -> int:
    sources = {"corpus": options.corpus, "lexicon": options.lexicon, "layers": options.layers}
    if options.export is None:
        explore(options.vectors, **sources, port=options.port, open_browser=not options.no_browser, notify=_print_now)
        return 0
    n_words = 0

    def steps() -> Iterator[Progress]:
        nonlocal n_words
        n_words = yield from export_steps(create_explorer(options.vectors, **sources), options.export, options.words)

    watch(steps(), quiet=options.quiet)
    note(f"{options.export}: {n_words:,} words, {options.export.stat().st_size / 1e6:.1f} MB; it needs no server")
    return 0


def _print_now(message: str) -> None:
    note(message)
    sys.stdout.flush()
