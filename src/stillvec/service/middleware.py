"""Checks before the application: Host header and token, body size while it is read, time, concurrent requests."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Callable, Collection
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stillvec.service.http_errors import RequestError
from stillvec.service.limits import Limits
from stillvec.service.metrics import Metrics

DOCS_PATH = "/docs"
_WITHOUT_TOKEN = frozenset(("/", "/health", DOCS_PATH))  # monitoring has no token, a browser sends none for a page
_NEVER_BUSY = frozenset(("/health", "/metrics"))  # answered even above the limit of concurrent requests


class RequestGuard:
    """ASGI middleware; `log` receives one line per request."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        token: str | None,
        metrics: Metrics,
        log: Callable[[str], None] | None,
        hosts: Collection[str] = (),
    ) -> None:
        self.app = app
        self.limits = limits
        self.token = None if token is None else token.encode()
        self.metrics = metrics
        self.log = log
        self.hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self.limits.body)
        start = time.perf_counter()
        self.metrics.in_flight += 1
        try:
            await self._handle(scope, exchange)
        finally:
            self.metrics.in_flight -= 1
            seconds, status = time.perf_counter() - start, exchange.status or 500
            self.metrics.record(scope["method"], scope["path"], status, seconds)
            if self.log is not None:  # without the query, which contains the user's words
                self.log(f"{scope['method']} {quote(scope['path'])} {status} {1000 * seconds:.1f} ms")

    async def _handle(self, scope: Scope, exchange: _Exchange) -> None:
        try:
            self._check(scope)
            async with asyncio.timeout(self.limits.seconds):
                await self.app(scope, exchange.receive, exchange.send)
        except RequestError as error:
            await error.to_response()(scope, exchange.receive, exchange.send)
        except TimeoutError:
            if exchange.status is None:
                await self._timeout(exchange.complete).to_response()(scope, exchange.receive, exchange.send)

    def _check(self, scope: Scope) -> None:
        """Reject what can be rejected before the body is read."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        path = scope["path"]
        if self.hosts and _host_name(headers.get(b"host", b"").decode("latin-1")) not in self.hosts:
            message = "This server only answers requests for this machine; the 'Host' header names another one. --open"
            raise RequestError(403, f"{message} accepts all of them.")
        if self.token is not None and path not in _WITHOUT_TOKEN:
            self._check_token(headers.get(b"authorization", b""))
        if self.metrics.in_flight > self.limits.requests and path not in _NEVER_BUSY:
            message = f"The server is already handling {self.limits.requests:,} requests; try again later."
            raise RequestError(503, message, headers={"Retry-After": "1"})
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self.limits.body:
            raise _too_large(self.limits.body)

    def _check_token(self, header: bytes) -> None:
        scheme, _, token = header.partition(b" ")
        if scheme.lower() != b"bearer":
            message = "This server requires a token: send the header 'Authorization: Bearer TOKEN'."
        elif not hmac.compare_digest(token.strip(), self.token or b""):
            message = "The token is wrong."
        else:
            return
        raise RequestError(401, message, headers={"WWW-Authenticate": "Bearer"})

    def _timeout(self, complete: bool) -> RequestError:
        limit = f"{self.limits.seconds:g} seconds"
        if complete:
            return RequestError(504, f"No result within {limit}; request less at once.")
        message = f"The request was not received completely within {limit}."
        return RequestError(408, message, headers={"Connection": "close"})


def _host_name(header: str) -> str:
    """localhost:8000 → localhost; [::1]:8000 → ::1."""
    return re.sub(r":\d*$", "", header).strip("[]").lower()


class _Exchange:
    """One request and its response: counts the bytes of the body, remembers the status."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, max_bytes: int) -> None:
        self.status: int | None = None
        self.complete = not {name for name, _ in scope["headers"]} & {b"content-length", b"transfer-encoding"}
        self._receive = receive
        self._send = send
        self._max_bytes = max_bytes
        self._n_bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._n_bytes += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
            if self._n_bytes > self._max_bytes:
                raise _too_large(self._max_bytes)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _too_large(max_bytes: int) -> RequestError:
    message = f"The body must be at most {max_bytes:,} bytes; send it in parts."
    return RequestError(413, message, headers={"Connection": "close"})
