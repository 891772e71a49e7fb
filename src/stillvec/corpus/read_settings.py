"""Reader settings, and the counts of one pass over a corpus."""

from dataclasses import dataclass
from typing import Literal

from stillvec.errors import CorpusError

ParagraphMode = Literal["auto", "lines", "blocks"]


@dataclass(frozen=True)
class CorpusSettings:
    """How a corpus is read."""

    field: str | None = None  # of JSON lines and Parquet; default: "text"
    paragraphs: ParagraphMode = "auto"
    strict: bool = False  # raise an error for bytes that are not UTF-8


@dataclass
class ReadStats:
    """Counts of one pass over a corpus so far."""

    strict: bool = False
    n_replaced: int = 0  # bytes that are not UTF-8
    first_replaced: str = ""  # where the first of them is
    n_files: int = 0
    n_paragraphs: int = 0
    n_characters: int = 0

    def add_replaced(self, n_bytes: int, name: str, line: int, byte: int) -> None:
        """Count bytes that are not valid text; raise an error if `strict`."""
        if self.strict:
            raise CorpusError.expected(
                "UTF-8",
                f"another encoding at byte {byte:,}",
                path=name,
                line=line,
                cure="convert the file (iconv -f latin1 -t utf8), or read it without strict",
                code="encoding",
            )
        self.n_replaced += n_bytes
        self.first_replaced = self.first_replaced or f"{name}, line {line:,}, byte {byte:,}"
