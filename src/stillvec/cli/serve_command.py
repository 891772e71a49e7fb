"""stillvec serve VECTORS...: vectors over HTTP."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from stillvec.cli.console import note
from stillvec.errors import UsageError
from stillvec.formats import load
from stillvec.registry import require, settings_from
from stillvec.service import Limits


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "vectors", metavar="[NAME=]VECTORS", nargs="+", help="folders or files of vectors; the first is the usual one"
    )
    parser.add_argument("--host", default="127.0.0.1", help="(default: 127.0.0.1, this machine alone)")
    parser.add_argument("--port", type=int, default=8000, help="(default: 8000; 0: any that is free)")
    parser.add_argument(
        "--token-file", metavar="FILE", help="requests must bring the token in this file (or in $STILLVEC_TOKEN)"
    )
    parser.add_argument("--open", action="store_true", help="allow other machines without a token")
    parser.add_argument(
        "--limit",
        metavar="NAME=N",
        action="append",
        default=[],
        help="body (bytes), batch, k, seconds, requests (at once) or threads; may be given several times",
    )
    parser.add_argument("--log", action="store_true", help="print a line a request")


def run(options: argparse.Namespace) -> int:
    for package in ("fastapi", "uvicorn", "usearch", "threadpoolctl"):
        require(package, "serve", "stillvec serve")
    from stillvec.service.application import application
    from stillvec.service.models import Sets
    from stillvec.service.server import address, bound, serve

    limits, token = _limits(options.limit), _token(options.token_file)
    paths = _named(options.vectors)
    with bound(options.host, options.port, guarded=options.open or token is not None) as place:
        sets = Sets({name: load(path) for name, path in paths.items()}, note)
        for name, served in sets.items():
            served.prepare()
            note(f"{name}: {len(served.vectors):,} words, {served.vectors.dim} dimensions, {served.usual} search")
        # a page elsewhere whose name was pointed at this machine (DNS rebinding) comes with that name, and gets nothing
        names = () if options.open or token is not None else (options.host, "localhost", "127.0.0.1", "::1")
        app = application(sets, limits, token=token, tell=note if options.log else None, names=names)
        told = "with the token" if token is not None else "without a token"
        serve(app, place, limits, lambda: note(f"serving at {address(place)}, {told}; /docs tells how; Ctrl+C stops"))
    note("stopped")
    return 0


def _named(given: list[str]) -> dict[str, str]:
    """NAME=PATH, or the last part of the path; a path may hold `=` itself."""
    paths: dict[str, str] = {}
    for each in given:
        name, equals, path = each.partition("=")
        if not equals or Path(each).exists():
            name, path = Path(each).resolve().name, each
        if not name or name in paths:
            what = "twice" if name else "nowhere"
            raise UsageError(
                f"Each set of vectors has a name of its own, and {name!r} stands there {what}: NAME=VECTORS."
            )
        paths[name] = path
    return paths


def _limits(given: list[str]) -> Limits:
    pairs = [each.partition("=") for each in given]
    return settings_from(Limits, {name.strip(): value.strip() for name, _, value in pairs}, "--limit")


def _token(file: str | None) -> str | None:
    """Never on the command line, where every user of the machine could read it."""
    token = os.environ.get("STILLVEC_TOKEN") if file is None else Path(file).read_text("utf-8", "replace").strip()
    if token is None:
        return None
    if not token.isprintable() or not token.isascii() or not token or " " in token:
        where = "STILLVEC_TOKEN" if file is None else file
        raise UsageError(f"A token of printable ASCII without spaces is wanted in {where}, and there is none.")
    return token
