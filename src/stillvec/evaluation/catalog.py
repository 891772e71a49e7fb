"""Datasets used in papers: their size, source, licence and where to get them.

Only `stillvec datasets` reads this table. Files that are not in it are evaluated as well.
"""

from importlib.resources import files
from typing import NamedTuple


class KnownDataset(NamedTuple):
    names: tuple[str, ...]  # of the file, without its ending
    task: str
    items: str  # as its authors count them
    source: str
    terms: str  # only a licence that we have read is stated
    published: str  # where its authors say how to get it

    @property
    def name(self) -> str:
        return self.names[0]


_LINES = [line.split("\t") for line in files(__package__).joinpath("catalog.tsv").read_text("utf-8").splitlines()[1:]]
KNOWN = tuple(KnownDataset(tuple(names.split()), *fields) for names, *fields in _LINES)


def find_known(name: str) -> KnownDataset | None:
    """The entry for the dataset of a file; `stsb.test` is a part of `stsb`."""
    file = f"{name.lower()}."
    return next((item for item in KNOWN if any(file.startswith(f"{known}.") for known in item.names)), None)
