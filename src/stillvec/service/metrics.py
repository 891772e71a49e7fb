"""Counters in Prometheus's text format: a few numbers per path, so memory does not grow with requests."""

import bisect
from collections import Counter
from collections.abc import Iterator

from stillvec.memory import resident_memory
from stillvec.service.models import ServedModels

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PATHS = frozenset(
    [
        "/health",
        "/metrics",
        "/vectors",
        "/similarity",
        "/nearest",
        "/analogy",
        "/embed",
        "/v1/embeddings",
        "/v1/predict",
        "/v1/search",
    ]
)
_METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"])
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds, of the histogram


class Metrics:
    """Counts of the requests so far."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.in_flight = 0
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def record(self, method: str, path: str, status: int, seconds: float) -> None:
        label = path if path in PATHS else "/v1/models" if path.startswith("/v1/models") else "other"
        self.requests[method if method in _METHODS else "other", label, status] += 1
        buckets = self._buckets.setdefault(label, [0] * (len(_BOUNDS) + 1))
        buckets[bisect.bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[label] += seconds  # type: ignore[assignment]  # a Counter adds floats as well

    def render(self, models: ServedModels) -> str:
        return "".join(f"{line}\n" for line in self._lines(models))

    def _lines(self, models: ServedModels) -> Iterator[str]:
        yield from _header("stillvec_requests_total", "counter", "Requests answered.")
        for (method, path, status), count in sorted(self.requests.items()):
            yield f'stillvec_requests_total{{method="{method}",path="{path}",status="{status}"}} {count}'
        yield from _header("stillvec_requests_in_flight", "gauge", "Requests in progress.")
        yield f"stillvec_requests_in_flight {self.in_flight}"
        yield from self._histogram()
        yield from _header("stillvec_words", "gauge", "Words in a set of vectors, or with a vector in a head.")
        for served in models.list_all().values():
            yield f'stillvec_words{{model="{_escape(served.name)}"}} {len(served.vectors)}'
        yield from _header("stillvec_labels", "gauge", "Labels of a head.")
        for head in models.heads.values():
            yield f'stillvec_labels{{model="{_escape(head.name)}"}} {len(head.head.labels)}'
        yield from _header("stillvec_recall_at_10", "gauge", "Recall of its approximate search.")
        for model in models.values():
            if model.recall is not None:
                yield f'stillvec_recall_at_10{{model="{_escape(model.name)}"}} {model.recall}'
        yield from _header("process_resident_memory_bytes", "gauge", "Resident memory of the server.")
        yield f"process_resident_memory_bytes {resident_memory()}"

    def _histogram(self) -> Iterator[str]:
        name = "stillvec_request_seconds"
        yield from _header(name, "histogram", "Seconds from a request to the end of its response.")
        for path, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*_BOUNDS, "+Inf"), buckets, strict=True):
                total += count
                yield f'{name}_bucket{{path="{path}",le="{bound}"}} {total}'
            yield f'{name}_sum{{path="{path}"}} {self._seconds[path]:.6f}'
            yield f'{name}_count{{path="{path}"}} {total}'


def _header(name: str, kind: str, help_text: str) -> tuple[str, str]:
    return f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
