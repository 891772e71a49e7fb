"""The file types of a corpus, recognized by suffix, else by the first bytes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from stillvec.corpus.conllu import read_conllu
from stillvec.corpus.plain_text import read_plain
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats, text_suffix
from stillvec.corpus.records import is_json_lines, read_json_lines, read_parquet
from stillvec.corpus.wikipedia import is_wikipedia, read_wikipedia
from stillvec.errors import CorpusError
from stillvec.files import check_is_text

Reader = Callable[[OpenedFile, CorpusSettings, ReadStats], Iterator[str]]


class FileType(NamedTuple):
    suffixes: tuple[str, ...]
    read: Reader
    matches_head: Callable[[bytes], bool] = lambda head: False


FILE_TYPES = (
    FileType((".parquet", ".pq"), read_parquet, lambda head: head.startswith(b"PAR1")),
    FileType((".xml",), read_wikipedia, is_wikipedia),
    FileType((".jsonl", ".json", ".ndjson"), read_json_lines, is_json_lines),
    FileType((".conllu",), read_conllu),
    FileType((".txt", ".text", ".md", ".rst", ".raw", ".tokens"), read_plain),
)
_BY_SUFFIX = {suffix: file_type.read for file_type in FILE_TYPES for suffix in file_type.suffixes}


def is_known(path: Path) -> bool:
    """Whether a file in a folder should be read."""
    suffix = text_suffix(path)
    return suffix in _BY_SUFFIX or (not suffix and bool(path.suffix))


def find_reader(opened: OpenedFile) -> Reader:
    """The reader of a file; a file that is not text raises an error."""
    by_head = (file_type.read for file_type in FILE_TYPES if file_type.matches_head(opened.head))
    reader = _BY_SUFFIX.get(text_suffix(opened.path)) or next(by_head, read_plain)
    if reader is not read_parquet:
        check_is_text(opened.head, opened.name, CorpusError)
    return reader
