"""Hostile and unlucky clients of a real server: silent, slow, greedy, too many, guessing."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec.errors import UsageError
from stillvec.formats import save
from stillvec.service import serve
from stillvec.vectors import WordVectors

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("usearch")

TOKEN = "a-token-of-24-characters"
DIM = 256


class Server:
    """`stillvec serve` in its own process; everything it prints is in `log`."""

    def __init__(self, folder: Path, log: Path, *flags: str, token: str | None = None, n_files: int = 0) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "STILLVEC_TOKEN"}
        environment |= {} if token is None else {"STILLVEC_TOKEN": token}
        call = [sys.executable, "-m", "stillvec", "serve", "--port", "0", *flags, str(folder)]
        if n_files:
            call = ["sh", "-c", f'ulimit -n {n_files}; exec "$@"', "sh", *call]
        self.log = log
        with log.open("w") as stream:
            settings: Any = {"stdout": stream, "stderr": stream, "env": environment | {"PYTHONUNBUFFERED": "1"}}
            self.process = subprocess.Popen(call, **settings)
        wait_until(lambda: "serving at " in self.output)
        self.port = int(self.output.partition("serving at ")[2].split()[0].rstrip(",").rpartition(":")[2])

    @property
    def output(self) -> str:
        return self.log.read_text("utf-8")

    @property
    def memory(self) -> float:
        """Resident memory in MB."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} | headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def post(path: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


LARGE = post("/vectors", {"words": ["king"] * 2048})  # 2,048 x 256 numbers, about 11 MB


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "small"
    words = ["king", "queen", "man", "woman"]
    save(WordVectors(words, np.random.default_rng(0).normal(size=(4, DIM)).astype(np.float32)), path)
    return path


@pytest.fixture
def start(folder: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start_server(*flags: str, **settings: Any) -> Server:
        servers.append(Server(settings.pop("folder", folder), tmp_path / f"{len(servers)}.log", *flags, **settings))
        return servers[-1]

    yield start_server
    for server in servers:
        server.process.kill()
        server.process.wait()


def test_connections_without_a_complete_header_are_closed(start: Callable[..., Server]) -> None:
    server = start("--limit", "idle=0.5")
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(3)]
        connections[1].sendall(b"GET /health HTTP/1.1\r\nHost: ")
        connections[2].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connections[2].recv(15) == b"HTTP/1.1 200 OK"
        connections[2].sendall(b"GET /health HTTP/1.1\r\nHost: ")  # the second request on it never comes
        assert read_all(connections[0]) == read_all(connections[1]) == b""
        assert read_all(connections[2]).count(b"HTTP/1.1") == 0
    assert server.send("GET", "/health")[0] == 200


def test_more_connections_than_the_limit_are_told_so(start: Callable[..., Server]) -> None:
    server = start("--limit", "connections=3")
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(server.connect())
        status, body = server.send("GET", "/vectors?word=king")
        assert (status, json.loads(body)["error"]["code"]) == (503, "overloaded")
    wait_until(lambda: server.send("GET", "/vectors?word=king")[0] == 200)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_slow_readers_are_aborted_and_their_memory_is_returned(start: Callable[..., Server]) -> None:
    server = start("--limit", "idle=2", "--limit", "output=40000000")
    server.send("POST", "/vectors", LARGE.partition(b"\r\n\r\n")[2])
    before = server.memory
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(40)]
        for connection in connections:
            connection.sendall(LARGE)
        peak = 0.0

        def all_closed() -> bool:
            nonlocal peak
            peak = max(peak, server.memory)
            return "stillvec_requests_in_flight 1\n" in server.send("GET", "/metrics")[1].decode()

        wait_until(all_closed)
        assert peak - before < 250  # 40 responses are 440 MB
        assert server.memory - before < 80
    assert server.send("GET", "/vectors?word=king")[0] == 200
    assert "Traceback" not in server.output


def test_a_response_that_is_read_too_slowly_ends_without_a_traceback(start: Callable[..., Server]) -> None:
    server = start("--limit", "seconds=1.5", "--limit", "idle=30")
    with server.connect() as connection:
        connection.sendall(LARGE)
        wait_until(lambda: "stillvec_requests_in_flight 2" in server.send("GET", "/metrics")[1].decode())
        wait_until(lambda: "stillvec_requests_in_flight 1" in server.send("GET", "/metrics")[1].decode())
        n_bytes = 0
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1 << 20):
                n_bytes += len(part)
        assert n_bytes < 8_000_000  # it was cut
    assert "ASGI" not in server.output


def test_large_requests_do_not_delay_small_ones(start: Callable[..., Server]) -> None:
    server = start("--limit", "seconds=600")
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(24))
        large = [pool.submit(server.send, "POST", "/vectors", LARGE.partition(b"\r\n\r\n")[2]) for _ in range(24)]
        wait_until(lambda: any(job.done() for job in large))
        for _ in range(5):
            assert server.send("GET", "/similarity?a=king&b=queen")[0] == 200
        assert not all(job.done() for job in large)  # the small ones overtook them
        assert {job.result()[0] for job in large} == {200}


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit")
def test_without_file_descriptors_the_server_stays_up_and_recovers(start: Callable[..., Server]) -> None:
    server = start("--limit", "idle=1", n_files=100)
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(server.connect())
        time.sleep(0.5)
        wait_until(lambda: _answers(server))
    wait_until(lambda: _answers(server, "/vectors?word=king"))  # a request may be refused until the clients are gone
    assert server.process.poll() is None
    assert "Traceback" not in server.output
    assert len(server.output) < 1000


def _answers(server: Server, path: str = "/health") -> bool:
    try:
        return server.send("GET", path)[0] == 200
    except (ConnectionError, http.client.HTTPException):
        return False


def test_a_client_that_sends_all_first_sees_that_its_body_is_too_large(start: Callable[..., Server]) -> None:
    server = start()
    for _ in range(5):
        assert server.send("POST", "/embed", b" " * (20 << 20))[0] == 413


def test_a_length_and_an_encoding_are_not_accepted_together(start: Callable[..., Server]) -> None:
    server = start()
    with server.connect() as connection:
        head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1  # what follows is not read as a request


def test_health_answers_head(start: Callable[..., Server]) -> None:
    assert start().send("HEAD", "/health") == (200, b"")


def test_a_short_token_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        serve(WordVectors(["king"], [[1.0]]), port=0, token="x" * 15)
    assert caught.value.code == "short-token"


def test_guessing_the_token_is_slowed_down(start: Callable[..., Server]) -> None:
    server = start(token=TOKEN)
    assert server.send("GET", "/metrics", Authorization=f"Bearer {TOKEN}")[0] == 200
    statuses = [server.send("GET", "/metrics", Authorization=f"Bearer {n}")[0] for n in range(25)]
    assert statuses == [401] * 20 + [429] * 5
    assert server.send("GET", "/metrics", Authorization=f"Bearer {TOKEN}")[0] == 429  # nor is a guess confirmed
    assert server.send("GET", "/health")[0] == 200


def test_requests_on_open_connections_are_answered_after_the_signal(start: Callable[..., Server]) -> None:
    server = start()
    connections = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in range(20)]
    for connection in connections:
        connection.request("GET", "/health")
        connection.getresponse().read()
    server.process.send_signal(signal.SIGTERM)
    for connection in connections:
        connection.request("GET", "/vectors?word=king")
    for connection in connections:
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Connection")) == (200, "close")
        answer.read()
    assert server.process.wait(60) == 0
    assert "Traceback" not in server.output


def test_every_request_under_way_is_answered_when_the_server_stops(start: Callable[..., Server]) -> None:
    server = start()
    begun = threading.Barrier(9)
    body, headers = json.dumps({"words": ["king"] * 200}), {"Content-Type": "application/json"}

    def send_requests() -> list[int]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.connect()
        begun.wait()
        statuses: list[int] = []
        while True:
            connection.request("POST", "/vectors", body, headers)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
            if answer.getheader("Connection") == "close":
                return statuses

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(send_requests) for _ in range(8)]
        begun.wait()
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        assert all({*job.result()} == {200} for job in jobs)
    assert server.process.wait(60) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="SIGBUS of memory maps")
def test_vectors_in_memory_survive_that_their_file_is_overwritten(start: Callable[..., Server], tmp_path: Path) -> None:
    path = tmp_path / "overwritten"
    save(WordVectors([f"w{n}" for n in range(2000)], np.ones((2000, DIM), np.float32)), path)
    server = start("--in-memory", folder=path)
    (path / "vectors.safetensors").write_bytes(b"x")
    status, body = server.send("GET", "/vectors?word=w1999")
    assert (status, json.loads(body)["data"][0]["vector"][0]) == (200, 1.0)
