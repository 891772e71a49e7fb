"""stillvec serve VECTORS...: serve vectors and heads over HTTP."""

import argparse
import os
from pathlib import Path

from stillvec.cli.console import note
from stillvec.errors import UsageError
from stillvec.registry import settings_from
from stillvec.service import Limits, serve


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    sources = "folders or files of vectors, and folders of heads (stillvec fit); the first of each is the default"
    add("vectors", metavar="[NAME=]VECTORS", nargs="+", help=sources)
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine)")
    add("--port", type=int, default=8000, help="port to listen on; 0: any free one (default: 8000)")
    token = "require the token in this file from every request (default: $STILLVEC_TOKEN, if set)"
    add("--token-file", metavar="FILE", help=token)
    add("--open", action="store_true", help="accept requests from other machines without a token")
    memory = "copy the vectors into memory: their files may then be overwritten in place"
    add("--in-memory", action="store_true", help=memory)
    add("--index", metavar="DIR", help="an index of documents (stillvec index), searched by POST /v1/search")
    limits = f"set a limit ({', '.join(vars(Limits()))}; see docs/serve.md); may be repeated"
    add("--limit", metavar="NAME=N", action="append", default=[], help=limits)
    add("--log", action="store_true", help="print one line per request")


def run(options: argparse.Namespace) -> int:
    pairs = [text.partition("=") for text in options.limit]
    serve(
        _name_paths(options.vectors),
        host=options.host,
        port=options.port,
        token=_read_token(options.token_file),
        allow_remote=options.open,
        in_memory=options.in_memory,
        index=options.index,
        limits=settings_from(Limits, {name.strip(): value.strip() for name, _, value in pairs}, "--limit"),
        notify=note,
        log_requests=note if options.log else None,
    )
    note("stopped")
    return 0


def _name_paths(arguments: list[str]) -> dict[str, str]:
    """Paths by the name in NAME=PATH, else by the last part of the path; a path may contain `=` itself."""
    paths: dict[str, str] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or Path(argument).exists():
            name, path = Path(argument).resolve().name, argument
        if not name or name in paths:
            reason = f"Two of these are named {name!r}" if name else f"{argument!r} has no name"
            raise UsageError.conflict(reason, cure="name them with NAME=VECTORS")
        paths[name] = path
    return paths


def _read_token(file: str | None) -> str | None:
    """From a file or the environment; on the command line every user of the machine could read it."""
    token = os.environ.get("STILLVEC_TOKEN") if file is None else Path(file).read_text("utf-8", "replace").strip()
    if token is None:
        return None
    if not token.isprintable() or not token.isascii() or not token or " " in token:
        where = "STILLVEC_TOKEN" if file is None else file
        raise UsageError.expected("a token of printable ASCII without spaces", "something else", where=where)
    return token
