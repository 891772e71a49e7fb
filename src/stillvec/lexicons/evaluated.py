"""The pairs that vectors are judged by, so that they can be taken out of a lexicon before it teaches."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

from stillvec.corpus.dictionary import numbered_lines
from stillvec.errors import LexiconError

_ENDINGS = (".tsv", ".csv", ".txt")
_NOT_DATA = (".", "readme", "license", "licence")


def read_evaluated(source: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """The first two words of every line of a file, or of all files of a folder (of its `similarity/`, if it has one).

    Lines are parted by tabs, else in a .csv by commas, else by spaces; headers name words that no lexicon joins.
    """
    place = Path(source).expanduser()
    if not place.is_dir():
        yield from _pairs(place)
        return
    folder = place / "similarity" if (place / "similarity").is_dir() else place
    inside = sorted(path for path in folder.iterdir() if path.suffix.lower() in _ENDINGS and path.is_file())
    files = [path for path in inside if not path.name.lower().startswith(_NOT_DATA)]
    if not files:
        raise LexiconError(
            f"Evaluated pairs were wanted, and {folder} has no {', '.join(_ENDINGS)}; name another folder."
        )
    for path in files:
        yield from _pairs(path)


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    indexed = None
    for number, line in numbered_lines(path):
        if "\t" in line:
            fields = line.split("\t")
        elif "," in line and path.suffix.lower() == ".csv":
            fields = next(csv.reader([line]))
            indexed = not fields[0] if indexed is None else indexed  # pandas writes numbers, and no name over them
            fields = fields[1:] if indexed else fields
        else:
            fields = line.split()
        if len(fields) < 2 or not (fields[0].strip() and fields[1].strip()):
            raise LexiconError(f"Two words were wanted in {path}:{number}, and {line[:40]!r} came; correct the line.")
        yield fields[0].strip(), fields[1].strip()
