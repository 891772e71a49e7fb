"""A socket, the application on it, and a shutdown that lets running requests finish."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI
from threadpoolctl import threadpool_limits

from stillvec.errors import UsageError
from stillvec.service.connections import ConnectionConfig, ListeningSocket
from stillvec.service.limits import Limits

_GRACE = 0.5  # seconds in which open connections may still send a request after the signal


def bind_socket(host: str, port: int, *, allow_remote: bool) -> socket.socket:
    """A bound socket, before anything is loaded; addresses other machines can reach only with `allow_remote`."""
    if not 0 <= port < 1 << 16:
        raise UsageError.expected("a port from 0 to 65,535", port)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UsageError(f"Unknown host {host!r}; use 127.0.0.1 for this machine only.", code="unknown-host") from None
    if not allow_remote and not ipaddress.ip_address(address[0]).is_loopback:
        raise UsageError(
            f"Other machines can reach {host}, and no token is set: use --token-file or STILLVEC_TOKEN, "
            "or allow access without a token with --open.",
            code="no-token",
        )
    listener = ListeningSocket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).lower()
        message = f"Cannot listen on {host}:{port} ({reason}); choose another port with --port."
        raise UsageError(message, code="port-unavailable") from None
    return listener


def format_address(listener: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_app(app: FastAPI, listener: socket.socket, limits: Limits, on_start: Callable[[], None] = lambda: None) -> None:
    """Answer requests until SIGTERM or SIGINT; then accept no more, and return when the running ones are answered."""
    config = ConnectionConfig(
        app,
        limits,
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        log_level="error",  # errors of clients are reported to them
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(limits.seconds) + 2,
    )
    # requests run in parallel on one core each: BLAS threads of one would only wait for those of another
    with threadpool_limits(1, "blas"):
        _Server(config, on_start).run(sockets=[listener])


class _Server(uvicorn.Server):
    config: ConnectionConfig

    def __init__(self, config: ConnectionConfig, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.config.stopping = True  # responses now say that the connection closes

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, answer what is on its way on the open ones, then close them."""
        for server in self.servers:
            server.close()
        await asyncio.sleep(_GRACE)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not raise the captured signal again, as uvicorn does: a requested shutdown is not a failure."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()
