"""Many clients at once against a real server on the loopback: errors, requests a second, latency, memory.

    python benchmarks/serve.py VECTORS [--clients 200] [--seconds 60] [--out FILE.json]

Each client has one connection and asks again as soon as it is answered, by turns for neighbours of a word (exact and
approximate), embeddings of eight texts in OpenAI's form, a vector, a cosine and an analogy; words are the vectors' own,
chosen with a seed. Clients and server share the machine, so latency is that of a server that is always asked for more
than it can do: 200 clients wait for each other. Memory is the server's resident set, read from /proc a second after the
load began, in its middle, at its end, and a second after it. Seconds of the processor that a request costs the server
can also be compared where others use the machine.
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
class Tally:
    latency: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    memory: dict[str, float] = field(default_factory=dict)  # MiB
    processor: float = 0.0  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out")
    options = parser.parse_args()
    clients, seconds = min(options.clients, MOST_CLIENTS), min(options.seconds, MOST_SECONDS)
    words = [word for word in load(options.vectors).words if word.isascii() and word.isalpha()]
    call = [sys.executable, "-m", "stillvec", "serve", options.vectors, "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "STILLVEC_TOKEN"}
    server = subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment | {"PYTHONUNBUFFERED": "1"})
    try:
        port = _port(server)
        tally = asyncio.run(_load(server.pid, port, words, clients, seconds))
    finally:
        server.terminate()
        code = server.wait(60)
    _tell(tally, clients, seconds, code)
    if options.out:
        Path(options.out).write_text(json.dumps(_summary(tally, seconds), indent=2) + "\n", encoding="utf-8")


def _port(server: subprocess.Popen[str]) -> int:
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("serving at "):
            return int(line.split()[2].rstrip(",").rpartition(":")[2])
    sys.exit("The server ended before it served.")


async def _load(pid: int, port: int, words: list[str], clients: int, seconds: float) -> Tally:
    tally = Tally()
    tally.memory["idle"] = _resident(pid)
    await _warm(port, words[0])
    before = _processor(pid)
    end = time.perf_counter() + seconds
    watching = asyncio.create_task(_watch(pid, tally, seconds))
    await asyncio.gather(*(_client(number, port, words, end, tally) for number in range(clients)))
    tally.processor = _processor(pid) - before
    await watching
    await asyncio.sleep(1)
    tally.memory["after"] = _resident(pid)
    return tally


async def _warm(port: int, word: str) -> None:
    """Until the approximate index is there: its memory is no growth."""
    for _ in range(1200):
        answer = await _one(port, _request("GET", f"/nearest?word={word}&exact=false"))
        if b'"search":"approximate"' in answer:
            return
        await asyncio.sleep(0.5)


async def _watch(pid: int, tally: Tally, seconds: float) -> None:
    await asyncio.sleep(min(1.0, seconds / 4))
    tally.memory["start"] = _resident(pid)
    await asyncio.sleep(max(0.0, seconds / 2 - 1))
    tally.memory["middle"] = _resident(pid)
    await asyncio.sleep(max(0.0, seconds / 2 - 1))
    tally.memory["end"] = _resident(pid)


async def _client(number: int, port: int, words: list[str], end: float, tally: Tally) -> None:
    rng = random.Random(number)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (begun := time.perf_counter()) < end:
        name, request = _question(rng, words)
        try:
            writer.write(request)
            status = await _read(reader)
        except (OSError, asyncio.IncompleteReadError) as error:
            tally.errors[type(error).__name__] += 1
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            continue
        if status != 200:
            tally.errors[str(status)] += 1
        tally.latency.setdefault(name, []).append(time.perf_counter() - begun)
    writer.close()


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


async def _read(reader: asyncio.StreamReader, into: bytearray | None = None) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(length)
    if into is not None:
        into += body
    return int(head.split(maxsplit=2)[1])


def _resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _processor(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _summary(tally: Tally, seconds: float) -> dict[str, object]:
    kinds = {"all": [each for times in tally.latency.values() for each in times], **tally.latency}
    latency = {name: _quantiles(times) for name, times in kinds.items()}
    found = {"seconds": seconds, "processor_seconds": tally.processor, "latency_ms": latency}
    return found | {"errors": dict(tally.errors), "memory_mib": tally.memory}


def _quantiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    at = {f"p{share}": 1000 * ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95, 99)}
    return {"requests": len(ordered), **at, "most": 1000 * ordered[-1]}


def _tell(tally: Tally, clients: int, seconds: float, code: int) -> None:
    kinds = {"all": [each for times in tally.latency.values() for each in times], **tally.latency}
    total = len(kinds["all"])
    print(f"{clients} clients, {seconds:g} s: {total:,} requests, {total / seconds:,.0f} a second")
    print(f"the server's processor: {tally.processor:.1f} s, {1000 * tally.processor / max(1, total):.1f} ms a request")
    print(f"errors: {dict(tally.errors) or 'none'}; the server stopped with {code}")
    for name in ("all", *sorted(tally.latency)):
        found = _quantiles(kinds[name])
        told = ", ".join(f"{key} {value:,.0f} ms" for key, value in found.items() if key != "requests")
        print(f"  {name:<22}{found['requests']:>8,}  {told}")
    print("memory: " + ", ".join(f"{when} {size:,.1f} MiB" for when, size in tally.memory.items()))


if __name__ == "__main__":
    main()
