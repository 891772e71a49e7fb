"""Spans of IOB tags and their counts, compatible with `conlleval` and the default mode of `seqeval`.

A span starts at B-X, S-X or U-X, at a change of type, and at any tag after O or an end tag (E-X, L-X, S-X, U-X), so
invalid tag sequences also yield spans. A predicted span is correct if its type, first word and last word all match.
"""

import re
from collections.abc import Iterable, Sequence

_TAG = re.compile(r"O|[BIESLU]-.+")
_ENDS = frozenset("ESLU")
_STARTS = frozenset("BSU")


def are_spans(tags: Iterable[str]) -> bool:
    """Whether the tags encode spans: only O, B-X, I-X, ..., and not only O."""
    seen = set(tags)
    return any("-" in tag for tag in seen) and all(_TAG.fullmatch(tag) for tag in seen)


def spans(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Extract the spans of a sentence as (type, first, last)."""
    result = set()
    first, kind, before = 0, "", "O"
    for place, tag in enumerate([*tags, "O"]):
        mark, _, now = tag.partition("-")
        starts = mark in _STARTS or before in "O" or before in _ENDS or now != kind
        if before != "O" and (mark == "O" or starts):
            result.add((kind, first, place - 1))
        if mark != "O" and starts:
            first = place
        before, kind = mark, now
    return result


def counts(gold: Sequence[str], said: Sequence[str]) -> tuple[int, int, int]:
    """Number of correct, predicted and gold spans of a sentence."""
    true, predicted = spans(gold), spans(said)
    return len(true & predicted), len(predicted), len(true)
