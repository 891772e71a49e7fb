"""The explorer page and its queries over HTTP, for this machine only.

Loopback, GET, and our own `Host`: a web page whose host name was pointed at 127.0.0.1 (DNS rebinding) gets nothing.
"""

import json
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stillvec.errors import StillvecError, UsageError
from stillvec.exploration.explorer import Explorer, UnknownWord
from stillvec.exploration.page_export import build_live_page

_MAX_PATH = 20_000  # characters
_MAX_CONNECTIONS = 100


class Query:
    """The parameters of a request."""

    def __init__(self, text: str) -> None:
        self.values = parse_qs(text, keep_blank_values=True)

    def all(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def one(self, name: str, default: str | None = None) -> str:
        values = self.all(name) or ([] if default is None else [default])
        if len(values) != 1:
            raise UsageError.expected(f"one {name!r}", len(values), where="query")
        return values[0]

    def number(self, name: str, default: int) -> int:
        text = self.one(name, str(default))
        try:
            return int(text)
        except ValueError:
            raise UsageError.expected("a whole number", repr(text), where=name) from None


QUERIES: Mapping[str, Callable[[Explorer, Query], Any]] = {
    "about": lambda explorer, query: explorer.describe(),
    "complete": lambda explorer, query: explorer.complete(query.one("typed")),
    "neighbours": lambda explorer, query: explorer.find_neighbours(
        query.one("word"), query.number("k", 12), group=query.one("group", "") == "1"
    ),
    "analogy": lambda explorer, query: explorer.solve_analogy(
        query.one("a"), query.one("b"), query.one("c"), query.number("k", 8), query.one("method", "3cosadd")
    ),
    "odd": lambda explorer, query: explorer.find_odd_one_out(query.all("word")),
    "axes": lambda explorer, query: explorer.project_words(query.one("set"), *map(query.all, ("x", "y", "word"))),
    "card": lambda explorer, query: explorer.describe_word(query.one("word")),
    "examples": lambda explorer, query: explorer.find_examples(query.one("word")),
    "documents": lambda explorer, query: explorer.search_documents(
        query.one("text"), query.number("k", 10), query.one("method", "hybrid")
    ),
    "map": lambda explorer, query: explorer.get_map(
        query.one("set"), query.one("method", "tsne"), query.one("rows", "")
    ),
    "lists": lambda explorer, query: explorer.describe_lists(),
    "fields": lambda explorer, query: explorer.describe_fields(query.one("set")),
    "vectors": lambda explorer, query: explorer.get_vectors(query.one("set"), query.one("rows")),
}


class PageServer(ThreadingHTTPServer):
    """`PageServer(explorer)` binds its port at once; `serve_forever()` answers. Port 0: any free one.

    A subclass gives its own page with its policy (`content`) and queries, which it answers itself.
    """

    daemon_threads = True

    def __init__(
        self,
        explorer: Explorer | None,
        port: int = 0,
        *,
        content: tuple[str, str] | None = None,
        queries: Mapping[str, Callable[[Any, Query], Any]] = QUERIES,
    ) -> None:
        self.explorer: Any = self if explorer is None else explorer  # what answers the queries
        self.queries = queries
        self.page, self.policy = build_live_page() if content is None else content
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        if not 0 <= port < 1 << 16:
            raise UsageError.expected("a port from 0 to 65,535", port)
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            message = f"Cannot listen on 127.0.0.1:{port} ({(error.strerror or str(error)).lower()}); choose another"
            raise UsageError(f"{message} port with --port.", code="port-unavailable") from None

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closed the connection or does not read is not an error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    @property
    def hosts(self) -> set[str]:
        return {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version = "stillvec"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds without a byte sent or received

    def do_GET(self) -> None:
        try:
            url = urlsplit(self.path)
        except ValueError:
            self._send_json(400, {"error": "The address is not a valid URL."})
            return
        hosts = [host.lower() for host in self.headers.get_all("Host", [])]
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # else the body would be read as the next request
            self._send_json(400, {"error": "Expected a request without a body."})
        elif len(hosts) != 1 or hosts[0] not in self.server.hosts:
            self._send_json(403, {"error": f"This page only answers requests for {self.server.address}."})
        elif len(self.path) > _MAX_PATH:
            self._send_json(414, {"error": f"The request must be at most {_MAX_PATH:,} characters; send fewer words."})
        elif url.path == "/":
            self._send(200, self.server.page.encode(), "text/html; charset=utf-8")
        elif (name := url.path.removeprefix("/api/")) in self.server.queries and url.path.startswith("/api/"):
            self._answer(name, Query(url.query))
        else:
            self._send_json(404, {"error": f"Nothing at {url.path}; the page is at /."})

    def _answer(self, name: str, query: Query) -> None:
        try:
            self._send_json(200, self.server.queries[name](self.server.explorer, query))
        except UnknownWord as error:  # an answer: a browser would log any other status as an error
            self._send_json(200, {"error": str(error), "word": error.word, "alike": error.suggestions})
        except StillvecError as error:
            self._send_json(400, {"error": str(error)})

    def _send_json(self, status: int, content: Any) -> None:
        self._send(status, json.dumps(content).encode("ascii"), "application/json")

    def _send(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": self.server.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: only the command line prints."""
