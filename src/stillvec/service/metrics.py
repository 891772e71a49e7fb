"""Counters in the text form of Prometheus: a few numbers a path, so that memory does not grow with requests."""

from __future__ import annotations

import bisect
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from stillvec.service.models import Sets

TEXT = "text/plain; version=0.0.4; charset=utf-8"
PATHS = frozenset(
    ("/health", "/metrics", "/vectors", "/similarity", "/nearest", "/analogy", "/embed", "/v1/embeddings")
)
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"))
_UP_TO = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


class Meter:
    """What has been answered so far."""

    def __init__(self) -> None:
        self.answered: Counter[tuple[str, str, int]] = Counter()
        self.in_flight = 0
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        place = path if path in PATHS else "/v1/models" if path.startswith("/v1/models") else "other"
        self.answered[method if method in _METHODS else "other", place, status] += 1
        buckets = self._buckets.setdefault(place, [0] * (len(_UP_TO) + 1))
        buckets[bisect.bisect_left(_UP_TO, seconds)] += 1
        self._seconds[place] += seconds  # type: ignore[assignment]  # a Counter adds floats as well

    def text(self, sets: Sets) -> str:
        return "".join(f"{line}\n" for line in self._lines(sets))

    def _lines(self, sets: Sets) -> Iterator[str]:
        yield from _head("stillvec_requests_total", "counter", "Requests answered.")
        for (method, path, status), count in sorted(self.answered.items()):
            yield f'stillvec_requests_total{{method="{method}",path="{path}",status="{status}"}} {count}'
        yield from _head("stillvec_requests_in_flight", "gauge", "Requests being answered.")
        yield f"stillvec_requests_in_flight {self.in_flight}"
        yield from self._times()
        for name, what in (
            ("words", "Words of a set of vectors."),
            ("recall_at_10", "Recall of its approximate search."),
        ):
            yield from _head(f"stillvec_{name}", "gauge", what)
            for served in sets.values():
                value = len(served.vectors) if name == "words" else served.recall
                if value is not None:
                    yield f'stillvec_{name}{{model="{_escaped(served.name)}"}} {value}'
        yield from _head("process_resident_memory_bytes", "gauge", "Memory of the server.")
        yield f"process_resident_memory_bytes {resident()}"

    def _times(self) -> Iterator[str]:
        name = "stillvec_request_seconds"
        yield from _head(name, "histogram", "Seconds from a request to the end of its answer.")
        for path, buckets in sorted(self._buckets.items()):
            below = 0
            for bound, count in zip((*_UP_TO, "+Inf"), buckets, strict=True):
                below += count
                yield f'{name}_bucket{{path="{path}",le="{bound}"}} {below}'
            yield f'{name}_sum{{path="{path}"}} {self._seconds[path]:.6f}'
            yield f'{name}_count{{path="{path}"}} {below}'


def resident() -> int:
    """Bytes of memory this process holds; 0 where the system does not say."""
    file = Path("/proc/self/statm")
    return int(file.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") if file.exists() else 0


def _head(name: str, kind: str, what: str) -> tuple[str, str]:
    return f"# HELP {name} {what}", f"# TYPE {name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
