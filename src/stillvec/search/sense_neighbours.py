"""The nearest words of a sense."""

from __future__ import annotations

from stillvec.sense_table import Sense
from stillvec.vectors import WordVectors


def find_near(vectors: WordVectors, sense: Sense, k: int) -> list[tuple[str, float]]:
    """The `k` nearest words of a sense, without forms of its word, which all senses are near to, or of each other."""
    found = vectors.inflections.group(lambda n: vectors.nearest(sense.vector, n, exclude=[sense.word]), k, [sense.word])
    return [(word, cosine) for word, cosine, _ in found]
