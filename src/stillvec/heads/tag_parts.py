"""Tags that are made of parts: `(S[dcl]\\NP)/NP` and `NOUN|Case=Gen|Number=Plur` as sequences of primitives.

    ccg         divided at brackets and slashes, which are primitives themselves (Bhargava & Penn 2020)
    features    divided before each bar

The primitives of a tag, joined, are the tag again.
"""

from __future__ import annotations

import re
from typing import Literal

Split = Literal["auto", "ccg", "features"]
_PARTS = {"ccg": re.compile(r"[()/\\]|[^()/\\]+"), "features": re.compile(r"\|?[^|]+|\|")}
_NAME = re.compile(r"[^()/\\\s]+")
_FEATURE = re.compile(r"\|([^=|]+)=([^=|]+)")


def split_tag(tag: str, split: str) -> tuple[str, ...]:
    """The primitives of a tag, of which there is at least one."""
    return tuple(_PARTS[split].findall(tag)) or (tag,)


def join_parts(parts: tuple[str, ...] | list[str]) -> str:
    """The tag of primitives."""
    return "".join(parts)


def choose_split(tags: list[str] | tuple[str, ...]) -> str:
    """Features where most tags that have parts have bars; else CCG."""
    bars, others = (sum(any(sign in tag for sign in signs) for tag in tags) for signs in ("|", "()/\\"))
    return "features" if bars >= others else "ccg"


def is_well_formed(tag: str, split: str) -> bool:
    """Whether a tag is a category of CCG, or a part of speech with features in order, none of them twice."""
    if split == "ccg":
        parts = split_tag(tag, split)
        return _read_category(parts, 0) == len(parts)
    first, *rest = split_tag(tag, split)
    found = [_FEATURE.fullmatch(part) for part in rest]
    names = [match[1].lower() for match in found if match]
    return "|" not in first and len(names) == len(rest) and names == sorted({*names})


def _read_category(parts: tuple[str, ...], at: int) -> int:
    """The place after the category that begins at a place: `X` or `X/Y`, X and Y simple or in brackets; -1 if none."""
    at = _read_simple(parts, at)
    if 0 < at < len(parts) and parts[at] in ("/", "\\"):
        return _read_simple(parts, at + 1)
    return at


def _read_simple(parts: tuple[str, ...], at: int) -> int:
    if at >= len(parts):
        return -1
    if parts[at] != "(":
        return at + 1 if _NAME.fullmatch(parts[at]) else -1
    inside = _read_category(parts, at + 1)
    return inside + 1 if 0 < inside < len(parts) and parts[inside] == ")" else -1
