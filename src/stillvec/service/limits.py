"""Limits of one request, of connections, and on requests at the same time."""

from dataclasses import dataclass

from stillvec.registry import check_least, check_positive

DEFAULT_K = 10


@dataclass(frozen=True)
class Limits:
    """A request beyond one of these is rejected; nothing is truncated silently."""

    body: int = 4 << 20  # bytes
    batch: int = 2048  # words, pairs or texts per request, as at OpenAI
    values: int = 1 << 20  # numbers per response: words or texts x dimensions
    k: int = 1000  # neighbours
    seconds: float = 30.0  # from the first byte of a request to the last byte of its response
    idle: float = 10.0  # seconds without a complete header, or without reading the response
    requests: int = 512  # at the same time
    connections: int = 1000  # open at the same time
    output: int = 256 << 20  # bytes of responses being sent, above which large requests are rejected
    threads: int = 4  # worker threads; the event loop only reads and writes

    def __post_init__(self) -> None:
        check_positive(self, *vars(self))
        check_least(self, k=DEFAULT_K)
