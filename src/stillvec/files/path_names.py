"""Short names for several paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from stillvec.errors import UsageError


def unique_names(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The last part of each path, with as many parts before it as are needed to tell them apart."""
    parts = [Path(path).resolve().parts for path in paths]
    for depth in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(path[-depth:]) for path in parts]
        if len(set(names)) == len(names):
            return names
    raise UsageError("The same vectors are given twice; give each set once.", code="given-twice")
