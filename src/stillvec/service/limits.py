"""Limits of one request, and on requests at the same time."""

import dataclasses
from dataclasses import dataclass

from stillvec.errors import UsageError

DEFAULT_K = 10


@dataclass(frozen=True)
class Limits:
    """A request beyond one of these is rejected; nothing is truncated silently."""

    body: int = 4 << 20  # bytes
    batch: int = 2048  # words, pairs or texts per request, as at OpenAI
    k: int = 1000  # neighbours
    seconds: float = 30.0  # from the first byte of a request to the last byte of its response
    requests: int = 512  # at the same time
    threads: int = 4  # worker threads; the event loop only reads and writes

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not getattr(self, field.name) > 0:
                raise UsageError.expected("more than 0", getattr(self, field.name), where=f"limit {field.name!r}")
        if self.k < DEFAULT_K:
            raise UsageError.expected(f"at least {DEFAULT_K} (the default k)", self.k, where="limit 'k'")
