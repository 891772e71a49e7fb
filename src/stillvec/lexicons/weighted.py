"""Tab-separated edges: word, word, then a weight, a relation, or both in this order."""

import math
from collections.abc import Iterator
from pathlib import Path

from stillvec.lexicons.edge import Edge
from stillvec.lexicons.entry_lines import bad_entry, read_entries


def read(path: Path) -> Iterator[Edge]:
    for number, line in read_entries(path, comments="# "):
        fields = [field.strip() for field in line.split("\t")]
        left, right, third, fourth = (fields + [""] * 3)[:4]
        weight = _parse_weight(third)
        relation = third if weight is None else fourth
        max_fields = 3 if weight is None else 4
        if not (left and right) or len(fields) > max_fields or not 0 <= (weight or 0) < math.inf:
            raise bad_entry("word, word, weight (at least 0) and relation, separated by tabs", line, path, number)
        yield Edge(left, right, 1.0 if weight is None else weight, relation)


def _parse_weight(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
