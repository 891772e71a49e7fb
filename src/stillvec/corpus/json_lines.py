"""JSON lines: one record a line, its text in a field (`text`, or a dotted path such as `article.body`)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from stillvec.corpus.decoding import read_records
from stillvec.corpus.opened_file import OpenedFile
from stillvec.corpus.plain_text import split_paragraphs
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.errors import CorpusError, suggest

DEFAULT_FIELD = "text"

_PATIENCE = 100  # records without the field, before it is called unknown
_MISSING = object()


def is_json_lines(head: bytes) -> bool:
    """Whether a file begins with a whole record on its first line."""
    line = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    if not line.startswith(b'{"'):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def read_json_lines(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """The paragraphs of one field of every record; records that lack it or have null are passed over."""
    field, mode = settings.field or DEFAULT_FIELD, settings.paragraphs
    found, lacking = False, 0
    record: object = None
    for number, line in enumerate(read_records(opened, stats), 1):
        if not line or line.isspace():
            continue
        where = f"{opened.name}:{number}"
        record = _parse(line, where)
        value = record if isinstance(record, str) else _look_up(record, field, where)
        found, lacking = found or value is not _MISSING, lacking + (value is _MISSING)
        if not found and lacking >= _PATIENCE:
            break
        if value is not _MISSING:
            for text in to_texts(value, field, where):
                yield from split_paragraphs(text, mode)
    if lacking and not found:
        raise unknown_field(field, record if isinstance(record, dict) else {}, opened.name)


def to_texts(value: object, field: str, where: str) -> list[str]:
    """A field's value as texts: a string, a list of strings, or nothing."""
    values = value if isinstance(value, list) else [value]
    for text in values:
        if text is not None and not isinstance(text, str):
            raise CorpusError(
                f"The field {field!r} should hold text, and in {where} it holds {_kind(text)}; give another --field."
            )
    return [text for text in values if isinstance(text, str) and text]


def unknown_field(field: str, known: dict[str, object] | list[str], name: str) -> CorpusError:
    """No such field: the nearest that there is, or all of them."""
    names = [str(key) for key in known]
    cure = f"{suggest(field, names)} (--field NAME)" if names else "the records have no fields at all."
    return CorpusError(f"The field {field!r} is nowhere in {name}; {cure}")


def _parse(line: str, where: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at column {error.colno}"
    except RecursionError:
        problem = "nested too deeply"
    except ValueError:
        problem = "a number with thousands of digits"
    array = line.lstrip().startswith("[") or line.strip() == "{"
    cure = (
        "one record a line is wanted (jq -c '.[]' or jq -c . makes it so)"
        if array
        else "correct the line or leave it out"
    )
    raise CorpusError(f"The line {where} is not JSON ({problem}); {cure}.")


def _look_up(record: object, field: str, where: str) -> object:
    if not isinstance(record, dict):
        raise CorpusError(
            f"A JSON object was wanted in {where}, and {_kind(record)} came; one record a line is wanted "
            "(jq -c '.[]' makes it so)."
        )
    if field in record:
        return record[field]
    value: object = record
    for part in field.split("."):
        if not isinstance(value, dict) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
