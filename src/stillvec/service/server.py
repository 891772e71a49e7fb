"""The server itself: a socket, the application on it, and a stop that lets requests end."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from threadpoolctl import threadpool_limits

from stillvec.errors import UsageError
from stillvec.service.limits import Limits


def bound(host: str, port: int, *, guarded: bool) -> socket.socket:
    """A socket that is ours before any work; off the loopback only for who is `guarded`."""
    if not 0 <= port < 1 << 16:
        raise UsageError(f"A port is a number from 0 to 65,535, and {port} came.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UsageError(f"There is no host {host!r} to listen on; 127.0.0.1 is this machine alone.") from None
    if not guarded and not ipaddress.ip_address(address[0]).is_loopback:
        raise UsageError(
            f"{host} can be reached from other machines, and no token is wanted of them; "
            "give --token-file or set STILLVEC_TOKEN, or insist with --open."
        )
    place = socket.socket(family, kind, protocol)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind(address)
    except OSError as error:
        place.close()
        told = (error.strerror or str(error)).lower()
        raise UsageError(f"Port {port} of {host} cannot be had ({told}); give another with --port.") from None
    return place


def address(place: socket.socket) -> str:
    """Where a bound socket is to be found."""
    host, port = place.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app: FastAPI, place: socket.socket, limits: Limits, started: Callable[[], None] = lambda: None) -> None:
    """Answer until SIGTERM or SIGINT; then take no more, and end when what was begun is answered."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        log_level="error",  # what clients do wrong is told to them
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(limits.seconds) + 2,
    )
    # requests run beside each other, each on one core: threads of one product would only wait for those of another
    with threadpool_limits(1, "blas"):
        _Server(config, started).run(sockets=[place])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn raises the signal again in the end, and the process would die of it; a stop is no failure."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()
