"""Spans of IOB tags, and how many are found: as `conlleval` and `seqeval` count by default.

A span begins at B-X, S-X or U-X, where the type changes, and at whatever follows O or an end (E-X, L-X, S-X, U-X): tags
that break the rules still make spans. A span counts as found only if its type, its first and its last word are right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_TAG = re.compile(r"O|[BIESLU]-.+")
_ENDS = frozenset("ESLU")
_STARTS = frozenset("BSU")


def are_spans(tags: Iterable[str]) -> bool:
    """Whether tags mark spans: O and some B-X, I-X, ..."""
    seen = set(tags)
    return any("-" in tag for tag in seen) and all(_TAG.fullmatch(tag) for tag in seen)


def spans(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """(type, first, last) of each span of a sentence."""
    found = set()
    first, kind, before = 0, "", "O"
    for place, tag in enumerate([*tags, "O"]):
        mark, _, now = tag.partition("-")
        fresh = mark in _STARTS or before in "O" or before in _ENDS or now != kind
        if before != "O" and (mark == "O" or fresh):
            found.add((kind, first, place - 1))
        if mark != "O" and fresh:
            first = place
        before, kind = mark, now
    return found


def counts(gold: Sequence[str], said: Sequence[str]) -> tuple[int, int, int]:
    """Spans of a sentence: right, said, there."""
    true, named = spans(gold), spans(said)
    return len(true & named), len(named), len(true)
