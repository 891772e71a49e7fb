"""The table of what a corpus can be made of: one line a form, by the file's name, else by its first bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stillvec.corpus.conllu import read_conllu
from stillvec.corpus.json_lines import is_json_lines, read_json_lines
from stillvec.corpus.opened_file import OpenedFile, text_suffix
from stillvec.corpus.parquet import is_parquet, read_parquet
from stillvec.corpus.plain_text import read_plain
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.corpus.wikipedia import is_wikipedia, read_wikipedia
from stillvec.errors import CorpusError
from stillvec.files import check_is_text

Reader = Callable[[OpenedFile, CorpusSettings, ReadStats], Iterator[str]]


@dataclass(frozen=True)
class FileType:
    """One form of text: how its files are called, how they begin, who reads them."""

    suffixes: tuple[str, ...]
    begins: Callable[[bytes], bool]
    read: Reader


def _never(head: bytes) -> bool:
    return False


FILE_TYPES = (
    FileType((".parquet", ".pq"), is_parquet, read_parquet),
    FileType((".xml",), is_wikipedia, read_wikipedia),
    FileType((".jsonl", ".json", ".ndjson"), is_json_lines, read_json_lines),
    FileType((".conllu",), _never, read_conllu),
    FileType((".txt", ".text", ".md", ".rst", ".raw", ".tokens"), _never, read_plain),
)
_BY_SUFFIX = {suffix: form for form in FILE_TYPES for suffix in form.suffixes}


def is_known(path: Path) -> bool:
    """Whether a file found in a folder is one to read."""
    suffix = text_suffix(path)
    return suffix in _BY_SUFFIX or (not suffix and bool(path.suffix))


def read(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """The paragraphs of a file of any form."""
    return find_reader(opened)(opened, settings, stats)


def find_reader(opened: OpenedFile) -> Reader:
    """Who reads it; what is no text is refused."""
    form = _BY_SUFFIX.get(text_suffix(opened.path))
    form = form or next((form for form in FILE_TYPES if form.begins(opened.head)), None)
    reader = read_plain if form is None else form.read
    if reader is not read_parquet:
        check_is_text(opened.head, opened.name, CorpusError)
    return reader
