"""A table parted by tabs: word, word, then a weight, a relation, or both in this order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from stillvec.corpus.definitions import numbered_lines
from stillvec.errors import LexiconError
from stillvec.lexicons.edge import Edge


def read(path: Path) -> Iterator[Edge]:
    for number, line in numbered_lines(path, comments="# "):
        fields = [field.strip() for field in line.split("\t")]
        left, right, third, fourth = (fields + [""] * 3)[:4]
        weight = _number(third)
        relation = third if weight is None else fourth
        most = 3 if weight is None else 4
        if not (left and right) or len(fields) > most or not 0 <= (weight or 0) < math.inf:
            raise LexiconError(
                f"Word, word, weight (at least 0) and relation, parted by tabs, were wanted in {path}:{number}, "
                f"and {line[:40]!r} came; correct the line."
            )
        yield Edge(left, right, 1.0 if weight is None else weight, relation)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
