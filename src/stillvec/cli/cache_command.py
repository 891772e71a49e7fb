"""stillvec cache: list or clear caches and what killed runs left behind."""

import argparse
from pathlib import Path

from stillvec.cli.console import note, table
from stillvec.cli.flags import add_cache
from stillvec.files import cache_folder
from stillvec.files.user_cache import KINDS, LEFTOVERS, clear_cache, list_cache


def arguments(parser: argparse.ArgumentParser) -> None:
    add_cache(parser, "contexts, parses and checkpoints are cached (default: $STILLVEC_CACHE, or the user's cache)")
    parser.add_argument(
        "--clear",
        nargs="?",
        const=LEFTOVERS,
        metavar="KIND[,KIND...]|all",
        help=f"remove these: {', '.join(KINDS)} (default: {LEFTOVERS})",
    )
    parser.add_argument("--older-than", type=float, default=0.0, metavar="DAYS", help="remove only what is older")


def run(options: argparse.Namespace) -> int:
    folder = Path(options.context_cache) if options.context_cache else cache_folder()
    if options.clear is None:
        entries = list_cache(folder)
    else:
        kinds = KINDS if options.clear == "all" else options.clear.split(",")
        entries = clear_cache(kinds, folder, older_than=options.older_than)
    rows = []
    for kind in KINDS:
        chosen = [entry for entry in entries if entry.kind == kind]
        if chosen:
            age = max(entry.days for entry in chosen)
            rows.append(
                (kind, len(chosen), f"{sum(entry.n_bytes for entry in chosen) / 1e6:,.1f} MB", f"{age:.0f} days")
            )
    title = f"{'Cached in' if options.clear is None else 'Removed from'} {folder}"
    if rows:
        table(title, ("kind", "number", "size", "oldest"), rows)
    else:
        note(f"{title}: nothing")
    return 0
