"""The folder for results that can be recomputed, what it holds, and how it is cleared."""

import os
import re
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from stillvec.errors import UsageError
from stillvec.files.temporary_names import find_abandoned, remove_path

_HEX = "[0-9a-f]{16,64}"
_PATTERNS = {  # kind: paths in the cache folder; nothing else is ever removed
    "contexts": re.compile(rf"{_HEX}/store\.json"),
    "texts": re.compile(rf"texts/{_HEX}\.npy"),
    "checkpoints": re.compile(rf"training-{_HEX}\.safetensors"),
    "parses": re.compile(rf"parses-{_HEX}\.conllu"),
    "answers": re.compile(rf"answers/{_HEX}\.\w+"),
    "maps": re.compile(rf"maps/{_HEX}\.npz"),
    "completion": re.compile(rf"completion/{_HEX}\.json"),
}
LEFTOVERS = "leftovers"  # of killed runs, also in $TMPDIR
KINDS = (*_PATTERNS, LEFTOVERS)


@dataclass(frozen=True)
class CacheEntry:
    """A file or folder that can be removed."""

    kind: str
    path: Path
    n_bytes: int
    days: float  # since it was written


def cache_folder() -> Path:
    """`$STILLVEC_CACHE`, else `stillvec` in the user's cache folder (`$XDG_CACHE_HOME`, `~/.cache`)."""
    if folder := os.environ.get("STILLVEC_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "stillvec"


def list_cache(folder: Path | None = None) -> list[CacheEntry]:
    """What the cache folder holds, and what killed runs left there and in $TMPDIR; other files are not listed."""
    root = folder or cache_folder()
    entries = [_describe(kind, path) for kind, path in _find(root)]
    for place in {root, Path(tempfile.gettempdir())}:
        entries += [_describe(LEFTOVERS, path) for path in find_abandoned(place)]
    return entries


def clear_cache(kinds: Collection[str], folder: Path | None = None, *, older_than: float = 0.0) -> list[CacheEntry]:
    """Remove what `list_cache` lists of these kinds, if it is older than a number of days; returns what was removed."""
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError.unknown("kind of cached files", kind, KINDS)
    removed = [entry for entry in list_cache(folder) if entry.kind in kinds and entry.days >= older_than]
    for entry in removed:
        remove_path(entry.path)
    return removed


def _find(root: Path) -> Iterator[tuple[str, Path]]:
    for path in (*sorted(root.glob("*")), *sorted(root.glob("*/*"))):
        name = path.relative_to(root).as_posix()
        for kind, pattern in _PATTERNS.items():
            if pattern.fullmatch(name):
                yield kind, path.parent if kind == "contexts" else path


def _describe(kind: str, path: Path) -> CacheEntry:
    files = [file.lstat() for file in (path, *path.rglob("*"))]
    days = (time.time() - max(file.st_mtime for file in files)) / 86400
    return CacheEntry(kind, path, sum(file.st_size for file in files), max(0.0, days))
