"""Connections below HTTP: how many there are, how long they may idle, and what happens without file descriptors."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from stillvec.service.http_errors import error_response
from stillvec.service.limits import Limits

_RESERVED = 64  # file descriptors that connections leave to files, libraries and refused connections
_LINGER = 1.0  # seconds in which a refused client may read why
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class ConnectionConfig(uvicorn.Config):
    """uvicorn's configuration with our limits; `stopping` is set by the first signal."""

    def __init__(self, app: FastAPI, limits: Limits, **settings: Any) -> None:
        super().__init__(app, http=HttpConnection, **settings)
        self.limits = limits
        self.max_connections = min(limits.connections, max(1, _count_descriptors() - _RESERVED))
        self.stopping = False


class HttpConnection(H11Protocol):
    """uvicorn's protocol; closes connections that are too many, send no complete header or do not read the response."""

    config: ConnectionConfig

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.app = self._respond
        self._refused = False
        self._read_timer = _Timer(self.loop)
        self._write_timer = _Timer(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # `pause_writing` at the first byte that the client does not take
        if len(self.connections) > self.config.max_connections:
            self._refuse()
        else:
            self._read_timer.start(self.config.limits.idle, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._read_timer.cancel()
        self._write_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._read_timer.cancel()  # from here on, the time limit of requests holds
        elif not self._read_timer.runs and not self.transport.is_closing():
            self._read_timer.start(self.config.limits.idle, self.transport.close)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer.start(self.config.limits.idle, self.transport.abort)

    def resume_writing(self) -> None:
        self._write_timer.cancel()
        super().resume_writing()

    def shutdown(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _refuse(self) -> None:
        """Answer 503 without reading the request; closing at once would discard the response."""
        self._refused = True
        self.connections.discard(self)
        message = f"The server already has {self.config.max_connections:,} connections; try again later."
        body = bytes(error_response(503, message).body)
        head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.transport.write(f"{head}Retry-After: 1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.write_eof()
        self._read_timer.start(_LINGER, self.transport.abort)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        cycle = self.cycle

        async def send_last(message: Message) -> None:
            if self.config.stopping and message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self.config.loaded_app(scope, receive, send_last)
        if cycle.response_started and not cycle.response_complete and not cycle.disconnected:
            self.transport.abort()  # the time limit passed while the response was sent
            await asyncio.sleep(0)  # until `connection_lost`


class ListeningSocket(socket.socket):
    """A socket that drops new connections when no file descriptors are left.

    asyncio would log a traceback per attempt, thousands per second. One descriptor is kept in reserve, to take such a
    connection from the queue and close it.
    """

    _reserve: int | None = None

    def listen(self, *backlog: int) -> None:
        self._open_reserve()
        super().listen(*backlog)

    def accept(self) -> tuple[socket.socket, Any]:
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in _NO_DESCRIPTORS:
                raise
            self._drop_first()
            raise BlockingIOError from None  # for asyncio: nothing to accept

    def close(self) -> None:
        self._close_reserve()
        super().close()

    def _drop_first(self) -> None:
        self._close_reserve()
        with contextlib.suppress(OSError):
            super().accept()[0].close()
        self._open_reserve()

    def _open_reserve(self) -> None:
        if self._reserve is None:
            with contextlib.suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY)

    def _close_reserve(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None


class _Timer:
    """One call after some seconds, which can be cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> bool:
        return self._handle is not None

    def start(self, seconds: float, action: Callable[[], None]) -> None:
        self.cancel()
        self._handle = self._loop.call_later(seconds, action)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def _count_descriptors() -> int:
    """File descriptors that this process may open."""
    try:
        import resource
    except ImportError:  # Windows
        return 1 << 30
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft
