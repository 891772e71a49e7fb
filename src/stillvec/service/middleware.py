"""Checks before the application: Host header and token, body size while it is read, time, concurrent requests."""

from __future__ import annotations

import asyncio
import contextlib
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
_MAX_WRONG, _WINDOW = 20, 60.0  # wrong tokens from an address within these seconds; then it has to wait
_MAX_ADDRESSES = 10_000
_MAX_DISCARDED = 16  # times the limit of a body: so much of a rejected one is read, so that its sender sees why
_DISCARD_SECONDS, _DISCARD_SILENCE = 10.0, 2.0


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
        self._wrong: dict[str, tuple[float, int]] = {}  # address: start of its window, wrong tokens since then

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["path"] != f"{DOCS_PATH}/":  # the links of this page are relative, so a browser is redirected
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}  # clients do not have to follow redirects
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
            if exchange.status is None:  # else the client reads too slowly, and the connection is aborted
                await self._timeout(exchange.complete).to_response()(scope, exchange.receive, exchange.send)

    def _check(self, scope: Scope) -> None:
        """Reject what can be rejected before the body is read."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        path = scope["path"]
        if self.hosts and _host_name(headers.get(b"host", b"").decode("latin-1")) not in self.hosts:
            message = "This server only answers requests for this machine; the 'Host' header names another one. --open"
            raise RequestError(403, f"{message} accepts all of them.")
        if self.token is not None and path not in _WITHOUT_TOKEN:
            self._check_token(headers.get(b"authorization", b""), (scope.get("client") or ("",))[0])
        if self.metrics.in_flight > self.limits.requests and path not in _NEVER_BUSY:
            message = f"The server is already handling {self.limits.requests:,} requests; try again later."
            raise RequestError(503, message, headers={"Retry-After": "1"})
        if b"content-length" in headers and b"transfer-encoding" in headers:
            message = "Expected either Content-Length or Transfer-Encoding, got both."  # a proxy may read the other one
            raise RequestError(400, message, headers={"Connection": "close"})
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self.limits.body:
            raise _too_large(self.limits.body)

    def _check_token(self, header: bytes, address: str) -> None:
        scheme, _, token = header.partition(b" ")
        now = time.monotonic()
        since, n_wrong = self._wrong.get(address, (now, 0))
        if now - since > _WINDOW:
            since, n_wrong = now, 0
        if n_wrong >= _MAX_WRONG:
            wait = int(since + _WINDOW - now) + 1
            message = f"{n_wrong} wrong tokens came from this address; try again in {wait} seconds."
            raise RequestError(429, message, headers={"Retry-After": str(wait)})
        if scheme.lower() != b"bearer":
            message = "This server requires a token: send the header 'Authorization: Bearer TOKEN'."
        elif not hmac.compare_digest(token.strip(), self.token or b""):
            message = "The token is wrong."
            if address not in self._wrong and len(self._wrong) >= _MAX_ADDRESSES:
                self._wrong.pop(next(iter(self._wrong)))
            self._wrong[address] = since, n_wrong + 1
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
        self._closes = False

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
            closes = (b"connection", b"close") in message.get("headers", ())
            self._closes = closes and self.status != 408 and not self.complete
        elif self._closes and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._discard_body()
            message = {"type": "http.response.body"}
        await self._send(message)

    async def _discard_body(self) -> None:
        """Read the rest: many clients read no response before they have sent all, and see a reset if we close."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while not self.complete and self._n_bytes <= _MAX_DISCARDED * self._max_bytes:
                    message = await asyncio.wait_for(self._receive(), _DISCARD_SILENCE)
                    self._n_bytes += len(message.get("body", b""))
                    self.complete = not message.get("more_body", False)  # also if the client is gone


def _too_large(max_bytes: int) -> RequestError:
    message = f"The body must be at most {max_bytes:,} bytes; send it in parts."
    return RequestError(413, message, headers={"Connection": "close"})
