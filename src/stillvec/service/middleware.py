"""Before the application: name and token, the size of the body while it is read, the time, and how many at once."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Callable, Collection
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stillvec.service.docs_page import MANUAL
from stillvec.service.http_errors import Refusal
from stillvec.service.limits import Limits
from stillvec.service.metrics import Meter

_OPEN = frozenset(("/health", MANUAL))  # without a token: who watches the server needs none, a browser sends none
_ALWAYS = frozenset(("/health", "/metrics"))  # also when there is too much else to do


class Guard:
    """ASGI middleware. `tell` gets a line a request, if it is given."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        token: str | None,
        meter: Meter,
        tell: Callable[[str], None] | None,
        names: Collection[str] = (),
    ) -> None:
        self.app = app
        self.limits = limits
        self.token = None if token is None else token.encode()
        self.meter = meter
        self.tell = tell
        self.names = {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self.limits.body)
        begun = time.perf_counter()
        self.meter.in_flight += 1
        try:
            await self._let_in(scope, exchange)
        finally:
            self.meter.in_flight -= 1
            seconds, status = time.perf_counter() - begun, exchange.status or 500
            self.meter.note(scope["method"], scope["path"], status, seconds)
            if self.tell is not None:  # without the query, which has the words that were asked for
                self.tell(f"{scope['method']} {quote(scope['path'])} {status} {1000 * seconds:.1f} ms")

    async def _let_in(self, scope: Scope, exchange: _Exchange) -> None:
        try:
            self._examine(scope)
            async with asyncio.timeout(self.limits.seconds):
                await self.app(scope, exchange.receive, exchange.send)
        except Refusal as refusal:
            await refusal.answer()(scope, exchange.receive, exchange.send)
        except TimeoutError:
            if exchange.status is None:
                await self._late(exchange.read).answer()(scope, exchange.receive, exchange.send)

    def _examine(self, scope: Scope) -> None:
        """What can be refused before a byte of the body is read."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        path = scope["path"]
        if self.names and _name(headers.get(b"host", b"").decode("latin-1")) not in self.names:
            told = "This server is for its own machine, and the header 'Host' has another name; --open lets others in."
            raise Refusal(403, told)
        if self.token is not None and path not in _OPEN:
            scheme, _, came = headers.get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(came.strip(), self.token):
                told = "The header 'Authorization: Bearer TOKEN' is wanted, with the token of this server."
                raise Refusal(401, told, headers={"WWW-Authenticate": "Bearer"})
        if self.meter.in_flight > self.limits.requests and path not in _ALWAYS:
            told = f"{self.limits.requests:,} requests are being answered, and no more are taken; try again."
            raise Refusal(503, told, headers={"Retry-After": "1"})
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self.limits.body:
            raise too_large(self.limits.body)

    def _late(self, read: bool) -> Refusal:
        most = f"{self.limits.seconds:g} seconds"
        if not read:
            return Refusal(408, f"The request had not come whole within {most}.", headers={"Connection": "close"})
        return Refusal(504, f"The answer was not there within {most}; ask for less at once.")


def _name(host: str) -> str:
    """localhost:8000 → localhost; [::1]:8000 → ::1."""
    return re.sub(r":\d*$", "", host).strip("[]").lower()


class _Exchange:
    """One request and its answer, counted while they pass."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        self.status: int | None = None
        self.read = not {name for name, _ in scope["headers"]} & {b"content-length", b"transfer-encoding"}
        self._receive = receive
        self._send = send
        self._most = most
        self._bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self.read = not message.get("more_body", False)
            if self._bytes > self._most:
                raise too_large(self._most)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def too_large(most: int) -> Refusal:
    told = f"A body of at most {most:,} bytes is read, and a larger one came; send it in parts."
    return Refusal(413, told, headers={"Connection": "close"})
