"""What every reader is given: how the user wants the text read, and where it counts what it meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stillvec.errors import CorpusError

ParagraphMode = Literal["auto", "lines", "blocks"]


@dataclass(frozen=True)
class CorpusSettings:
    """How a corpus is read."""

    field: str | None = None  # of JSON lines and Parquet; "text" where none is given
    paragraphs: ParagraphMode = "auto"
    strict: bool = False  # refuse bytes that are not UTF-8


@dataclass
class ReadStats:
    """What one reading of a corpus has met so far."""

    strict: bool = False
    replaced_bytes: int = 0
    first_place: str = ""  # of a byte that is not UTF-8
    files: int = 0
    paragraphs: int = 0
    characters: int = 0

    def add_replaced(self, number: int, name: str, line: int, byte: int) -> None:
        """Count bytes that are no text, or refuse them."""
        if self.strict:
            raise CorpusError(
                f"UTF-8 was wanted, and {name} has something else at byte {byte:,} (line {line:,}); "
                "convert it (iconv -f latin1 -t utf8), or read it without strict."
            )
        self.replaced_bytes += number
        self.first_place = self.first_place or f"{name}, line {line:,}, byte {byte:,}"
