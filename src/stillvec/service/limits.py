"""How much one request may ask for, and how many requests at once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from stillvec.errors import UsageError

USUAL_K = 10


@dataclass(frozen=True)
class Limits:
    """Whatever is beyond one of these is refused with a sentence; nothing is cut off in silence."""

    body: int = 4 << 20  # bytes
    batch: int = 2048  # words, pairs or texts of one request; OpenAI's own number
    k: int = 1000  # neighbours
    seconds: float = 30.0  # from the first byte of a request to the last of its answer
    requests: int = 512  # at once
    threads: int = 4  # that work; the loop itself only reads and writes

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not getattr(self, field.name) > 0:
                raise UsageError(f"The limit {field.name!r} must be more than 0, and {getattr(self, field.name)} came.")
        if self.k < USUAL_K:
            raise UsageError(
                f"The limit 'k' must be {USUAL_K} or more, the number where none is said, and {self.k} came."
            )
