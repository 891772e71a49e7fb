"""Many concurrent clients of a real server on loopback: errors, refusals, requests per second, latency, memory.

    python benchmarks/serve.py VECTORS [--clients 500] [--seconds 60] [--cores 2] [--out FILE.json]

Each client has one connection and sends its next request as soon as it gets a response: neighbours of a word (exact and
approximate), OpenAI-style embeddings of eight texts, a vector, a cosine or an analogy; words are drawn from the vectors
with a seed. Clients and server share the machine, so the latency is that of a saturated server. Memory is the resident
set of the server from /proc, one second after the load starts, midway and at its end. The server's CPU time per request
can be compared even on a shared machine. At the end the server gets SIGTERM while the clients still send: every request
must be answered. Refusals (503) are counted apart from errors (any other status, a closed connection).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from stillvec.formats import load

MOST_CLIENTS, MOST_SECONDS = 1000, 600


@dataclass
class LoadResult:
    latency: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    n_refused: int = 0
    n_after_stop: int = 0  # requests answered after SIGTERM
    stopping: bool = False
    memory: dict[str, float] = field(default_factory=dict)  # MiB
    cpu: float = 0.0  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors")
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cores", type=int, default=2, help="run clients and server on so many cores")
    parser.add_argument("--out")
    options = parser.parse_args()
    clients, seconds = min(options.clients, MOST_CLIENTS), min(options.seconds, MOST_SECONDS)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    words = [word for word in load(options.vectors).words if word.isascii() and word.isalpha()]
    call = [sys.executable, "-m", "stillvec", "serve", options.vectors, "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "STILLVEC_TOKEN"}
    server = subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment | {"PYTHONUNBUFFERED": "1"})
    try:
        port = _port(server)
        result = asyncio.run(_load(server, port, words, clients, seconds))
    finally:
        if sys.exception() is not None:  # otherwise it was stopped under load
            server.terminate()
        code = server.wait(60)
    _print_result(result, clients, seconds, code)
    if options.out:
        Path(options.out).write_text(json.dumps(_summary(result, seconds), indent=2) + "\n", encoding="utf-8")


def _port(server: subprocess.Popen[str]) -> int:
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("serving at "):
            return int(line.split()[2].rstrip(",").rpartition(":")[2])
    sys.exit("The server exited before it was ready.")


async def _load(server: subprocess.Popen[str], port: int, words: list[str], clients: int, seconds: float) -> LoadResult:
    result, pid = LoadResult(), server.pid
    result.memory["idle"] = _resident(pid)
    await _warm(port, words[0])
    before = _cpu_seconds(pid)
    tasks = [asyncio.create_task(_client(number, port, words, result)) for number in range(clients)]
    await _watch(pid, result, seconds)
    result.cpu = _cpu_seconds(pid) - before
    result.stopping = True
    server.terminate()
    await asyncio.gather(*tasks)
    return result


async def _warm(port: int, word: str) -> None:
    """Wait for the approximate index, so that its memory does not count as growth."""
    for _ in range(1200):
        answer = await _one(port, _request("GET", f"/nearest?word={word}&exact=false"))
        if b'"search":"approximate"' in answer:
            return
        await asyncio.sleep(0.5)


async def _watch(pid: int, result: LoadResult, seconds: float) -> None:
    await asyncio.sleep(min(1.0, seconds / 4))
    result.memory["start"] = _resident(pid)
    await asyncio.sleep(max(0.0, seconds / 2 - 1))
    result.memory["middle"] = _resident(pid)
    await asyncio.sleep(max(0.0, seconds / 2 - 1))
    result.memory["end"] = _resident(pid)


async def _client(number: int, port: int, words: list[str], result: LoadResult) -> None:
    rng = random.Random(number)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        start = time.perf_counter()
        name, request = _question(rng, words)
        try:
            writer.write(request)
            status, closes = await _read(reader)
        except (OSError, asyncio.IncompleteReadError) as error:
            result.errors[type(error).__name__] += 1
            status, closes = 0, True
        if status == 503:
            result.n_refused += 1
        elif status != 200:
            result.errors[str(status)] += status > 0
        else:
            result.latency.setdefault(name, []).append(time.perf_counter() - start)
            result.n_after_stop += result.stopping
        if closes:
            writer.close()
            if result.stopping:
                return
            reader, writer = await asyncio.open_connection("127.0.0.1", port)


def _question(rng: random.Random, words: list[str]) -> tuple[str, bytes]:
    a, b, c = rng.sample(words, 3)
    kind = rng.choice(("nearest, exact", "nearest, approximate", "embeddings", "vectors", "similarity", "analogy"))
    if kind == "embeddings":
        texts = [" ".join(rng.choices(words, k=20)) for _ in range(8)]
        body = json.dumps({"input": texts, "encoding_format": "base64"}).encode()
        return kind, _request("POST", "/v1/embeddings", body)
    paths = {
        "nearest, exact": f"/nearest?word={a}&exact=true",
        "nearest, approximate": f"/nearest?word={a}&exact=false",
        "vectors": f"/vectors?word={a}",
        "similarity": f"/similarity?a={a}&b={b}",
        "analogy": f"/analogy?a={a}&b={b}&c={c}",
    }
    return kind, _request("GET", paths[kind])


def _request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


async def _one(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    body = bytearray()
    await _read(reader, body)
    writer.close()
    return bytes(body)


async def _read(reader: asyncio.StreamReader, into: bytearray | None = None) -> tuple[int, bool]:
    """The status of a response, and whether the connection closes after it."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(length)
    if into is not None:
        into += body
    return int(head.split(maxsplit=2)[1]), b"connection: close" in head


def _resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _cpu_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _summary(result: LoadResult, seconds: float) -> dict[str, object]:
    kinds = {"all": [latency for times in result.latency.values() for latency in times], **result.latency}
    latency = {name: _quantiles(times) for name, times in kinds.items()}
    summary = {"seconds": seconds, "cpu_seconds": result.cpu, "latency_ms": latency}
    counts = {"errors": dict(+result.errors), "refused": result.n_refused, "answered_after_stop": result.n_after_stop}
    return summary | counts | {"memory_mib": result.memory}


def _quantiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    at = {f"p{share}": 1000 * ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95, 99)}
    return {"requests": len(ordered), **at, "max": 1000 * ordered[-1]}


def _print_result(result: LoadResult, clients: int, seconds: float, code: int) -> None:
    kinds = {"all": [latency for times in result.latency.values() for latency in times], **result.latency}
    total = len(kinds["all"])
    print(f"{clients} clients, {seconds:g} s: {total:,} requests, {total / seconds:,.0f} per second")
    print(f"CPU time of the server: {result.cpu:.1f} s, {1000 * result.cpu / max(1, total):.1f} ms per request")
    print(f"errors: {dict(+result.errors) or 'none'}; refused with 503: {result.n_refused:,}")
    print(f"answered after SIGTERM: {result.n_after_stop:,}; the server exited with code {code}")
    for name in ("all", *sorted(result.latency)):
        quantiles = _quantiles(kinds[name])
        shown = ", ".join(f"{key} {value:,.0f} ms" for key, value in quantiles.items() if key != "requests")
        print(f"  {name:<22}{quantiles['requests']:>8,}  {shown}")
    print("memory: " + ", ".join(f"{when} {size:,.1f} MiB" for when, size in result.memory.items()))


if __name__ == "__main__":
    main()
