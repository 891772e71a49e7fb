"""JSON lines: one record per line, with its text in a field (`text`, or a dotted path such as `article.body`)."""

import json
from collections.abc import Iterable, Iterator

from stillvec.corpus.decoding import read_records
from stillvec.corpus.opened_file import OpenedFile
from stillvec.corpus.plain_text import split_paragraphs
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.errors import CorpusError

DEFAULT_FIELD = "text"

_MAX_WITHOUT_FIELD = 100  # records, after which the field is reported as unknown
_MISSING = object()
_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}


def is_json_lines(head: bytes) -> bool:
    """Whether the first line of a file is a complete record."""
    line = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    if not line.startswith(b'{"'):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def read_json_lines(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Yield the paragraphs of one field of every record; records without it, or with null, are skipped."""
    field, name = settings.field or DEFAULT_FIELD, opened.name
    known, n_without = False, 0
    record: object = None
    for number, line in enumerate(read_records(opened, stats), 1):
        if not line or line.isspace():
            continue
        record = _parse(line, name, number)
        value = record if isinstance(record, str) else _look_up(record, field, name, number)
        if value is not _MISSING:
            known = True
            for text in to_texts(value, field, name, number):
                yield from split_paragraphs(text, settings.paragraphs)
            continue
        n_without += 1
        if not known and n_without >= _MAX_WITHOUT_FIELD:
            break
    if n_without and not known:
        raise unknown_field(field, record if isinstance(record, dict) else {}, name)


def to_texts(value: object, field: str, name: str, line: int | None = None) -> list[str]:
    """The value of a field as texts: a string, a list of strings, or null."""
    values = value if isinstance(value, list) else [value]
    for text in values:
        if text is not None and not isinstance(text, str):
            raise CorpusError.expected(
                "text", _kind(text), where=f"field {field!r}", path=name, line=line, cure="give another --field"
            )
    return [text for text in values if isinstance(text, str) and text]


def unknown_field(field: str, known: Iterable[object], name: str) -> CorpusError:
    return CorpusError.unknown("field", field, map(str, known), where="the records (--field NAME)", path=name)


def _parse(line: str, name: str, number: int) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at column {error.colno}"
    except RecursionError:
        problem = "nested too deeply"
    except ValueError:
        problem = "a number with thousands of digits"
    spread = line.lstrip().startswith("[") or line.strip() == "{"
    cure = "convert it with jq -c '.[]' or jq -c ." if spread else "correct or delete the line"
    raise CorpusError.expected(
        "one JSON record per line", f"invalid JSON ({problem})", path=name, line=number, cure=cure, code="not-json"
    )


def _look_up(record: object, field: str, name: str, number: int) -> object:
    if not isinstance(record, dict):
        cure = "convert it with jq -c '.[]'"
        raise CorpusError.expected("one JSON object per line", _kind(record), path=name, line=number, cure=cure)
    if field in record:
        return record[field]
    value: object = record
    for part in field.split("."):
        if not isinstance(value, dict) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number")
