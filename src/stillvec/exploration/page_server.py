"""The page and its questions over HTTP, on this machine only.

Loopback, GET, and a `Host` that is ours: a page elsewhere whose name was pointed at 127.0.0.1 (DNS rebinding) gets
nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stillvec.errors import StillvecError, UsageError
from stillvec.exploration.explorer import Explorer
from stillvec.exploration.explorer_page import live_page

Query = Mapping[str, list[str]]
_MOST_ASKED = 20_000  # characters of an address


def _one(query: Query, name: str, default: str | None = None) -> str:
    values = query.get(name, [])
    if len(values) == 1:
        return values[0]
    if not values and default is not None:
        return default
    raise UsageError(f"One {name!r} is wanted in the question, and {len(values)} came.")


def _number(query: Query, name: str, default: int) -> int:
    text = _one(query, name, str(default))
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name!r} is a whole number, and {text!r} came.") from None


QUESTIONS: Mapping[str, Callable[[Explorer, Query], Any]] = {
    "about": lambda explorer, query: explorer.about(),
    "complete": lambda explorer, query: explorer.complete(_one(query, "typed")),
    "neighbours": lambda explorer, query: explorer.neighbours(_one(query, "word"), _number(query, "k", 12)),
    "analogy": lambda explorer, query: explorer.analogy(
        _one(query, "a"), _one(query, "b"), _one(query, "c"), _number(query, "k", 8), _one(query, "method", "3cosadd")
    ),
    "odd": lambda explorer, query: explorer.odd_one_out(query.get("word", [])),
    "axes": lambda explorer, query: explorer.axes(
        _one(query, "set"), query.get("x", []), query.get("y", []), query.get("word", [])
    ),
    "card": lambda explorer, query: explorer.card(_one(query, "word")),
    "examples": lambda explorer, query: explorer.examples(_one(query, "word")),
    "map": lambda explorer, query: explorer.map(_one(query, "set")),
}


class Server(ThreadingHTTPServer):
    """`Server(explorer)` is bound at once; `serve_forever()` answers. Port 0: any that is free."""

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self.explorer = explorer
        self.page, self.policy = live_page()
        if not 0 <= port <= 65535:
            raise UsageError(f"A port is a number from 0 to 65535, and {port} came.")
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise UsageError(f"Port {port} cannot be had ({error.strerror}); give another, or none.") from None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away before the answer is no error; all else is told as usual."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    @property
    def hosts(self) -> set[str]:
        return {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "stillvec"
    sys_version = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            self._tell(403, {"error": f"This page is for {self.server.address} and for no other name."})
        elif len(self.path) > _MOST_ASKED:
            self._tell(414, {"error": f"The question is longer than {_MOST_ASKED:,} characters; ask for fewer words."})
        elif address.path == "/":
            self._send(200, self.server.page.encode(), "text/html; charset=utf-8")
        elif (name := address.path.removeprefix("/api/")) in QUESTIONS and address.path.startswith("/api/"):
            self._answer(name, parse_qs(address.query, keep_blank_values=True))
        else:
            self._tell(404, {"error": f"There is nothing at {address.path}; the page is at /."})

    def _answer(self, name: str, query: Query) -> None:
        try:
            found = QUESTIONS[name](self.server.explorer, query)
        except StillvecError as error:
            self._tell(400, {"error": str(error), "alike": getattr(error, "alike", [])})
        else:
            self._tell(200, found)

    def _tell(self, status: int, found: Any) -> None:
        self._send(status, json.dumps(found).encode("ascii"), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: only cli prints."""
