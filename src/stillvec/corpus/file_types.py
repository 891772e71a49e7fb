"""The file types of a corpus, recognized by suffix, else by the first bytes."""

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
    """The suffixes of a file type, the test of its first bytes, and its reader."""

    suffixes: tuple[str, ...]
    matches_head: Callable[[bytes], bool]
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
_BY_SUFFIX = {suffix: file_type for file_type in FILE_TYPES for suffix in file_type.suffixes}


def is_known(path: Path) -> bool:
    """Whether a file in a folder should be read."""
    suffix = text_suffix(path)
    return suffix in _BY_SUFFIX or (not suffix and bool(path.suffix))


def read(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Yield the paragraphs of a file of any type."""
    return find_reader(opened)(opened, settings, stats)


def find_reader(opened: OpenedFile) -> Reader:
    """The reader of a file; a file that is not text raises an error."""
    by_head = (file_type for file_type in FILE_TYPES if file_type.matches_head(opened.head))
    file_type = _BY_SUFFIX.get(text_suffix(opened.path)) or next(by_head, None)
    reader = file_type.read if file_type else read_plain
    if reader is not read_parquet:
        check_is_text(opened.head, opened.name, CorpusError)
    return reader
