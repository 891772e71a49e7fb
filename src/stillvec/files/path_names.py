"""Names of paths: short unique names, and the data files of a folder."""

import os
from collections.abc import Sequence
from pathlib import Path

from stillvec.errors import UsageError
from stillvec.files.compression import inner_suffix


def show_path(path: str | os.PathLike[str]) -> str:
    """A path as text that can be printed and written: bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def unique_names(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The last part of each path, with as many parts before it as are needed to tell them apart."""
    parts = [Path(path).resolve().parts for path in paths]
    for depth in range(1, max(map(len, parts), default=1) + 1):
        names = [show_path("/".join(path[-depth:])) for path in parts]
        if len(set(names)) == len(names):
            return names
    raise UsageError("The same vectors are given twice; give each set once.", code="given-twice")


def files_in(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The data files of a folder with one of these endings, compressed or not, in order of name."""
    if not folder.is_dir():
        return []
    files = (path for path in folder.iterdir() if inner_suffix(path) in suffixes and path.is_file())
    return sorted(path for path in files if not path.name.lower().startswith((".", "readme", "license", "licence")))
