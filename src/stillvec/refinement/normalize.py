"""Scale rows to unit length; a zero row stays zero."""

from dataclasses import dataclass
from typing import ClassVar

from stillvec.numerics import unit_rows
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Normalize:
    SUMMARY: ClassVar[str] = "rows scaled to unit length"

    def __call__(self, vectors: WordVectors) -> WordVectors:
        return vectors.with_matrix(unit_rows(vectors.matrix))
