"""CoNLL-U: sentences as `# text` has them, or as their forms joined; `# newpar` parts paragraphs."""

from __future__ import annotations

from collections.abc import Iterator

from stillvec.corpus.decoding import MAX_PARAGRAPH, cut, read_records
from stillvec.corpus.opened_file import OpenedFile
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.errors import CorpusError

_COLUMNS = 10


def read_conllu(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Paragraphs; in a file that marks none, every sentence is one."""
    paragraph: list[str] = []
    marked = False
    for sentence, opens in _sentences(opened, stats):
        if paragraph and (opens or not marked or sum(map(len, paragraph)) > MAX_PARAGRAPH):
            yield " ".join(paragraph)
            paragraph = []
        marked = marked or opens
        paragraph.extend(cut(sentence))
    if paragraph:
        yield " ".join(paragraph)


def _sentences(opened: OpenedFile, stats: ReadStats) -> Iterator[tuple[str, bool]]:
    """(sentence, whether it opens a paragraph)."""
    text, opens = "", False
    rows: list[list[str]] = []
    for number, line in enumerate(_with_end(read_records(opened, stats)), 1):
        if not line.strip():
            if text or rows:
                yield text or _join_forms(rows), opens
            text, opens, rows = "", False, []
        elif line.startswith("#"):
            key, _, value = line[1:].partition("=")
            text = value.strip() if key.strip() == "text" else text
            opens = opens or key.split()[:1] in (["newpar"], ["newdoc"])
        else:
            rows.append(split_columns(line, f"{opened.name}:{number}"))


def _with_end(all_lines: Iterator[str]) -> Iterator[str]:
    yield from all_lines
    yield ""


def split_columns(line: str, where: str) -> list[str]:
    row = line.split("\t")
    if len(row) != _COLUMNS:
        raise CorpusError(
            f"CoNLL-U has {_COLUMNS} columns parted by tabs, and {where} has {len(row)}; correct the line, "
            "or name the file .txt if it is another form."
        )
    return row


def is_number(text: str) -> bool:
    """Whether it can be the place of a word: Python reads no number of thousands of digits."""
    return text.isdecimal() and len(text) < 10


def _join_forms(rows: list[list[str]]) -> str:
    """Forms with spaces between, but for SpaceAfter=No; parts of a multi-word token (3-4) are passed over."""
    pieces: list[str] = []
    inside = 0
    for row in rows:
        number, _, last = row[0].partition("-")
        if "." in number or (not last and is_number(number) and int(number) <= inside):
            continue
        inside = int(last) if is_number(last) else inside
        pieces.append(row[1] + ("" if "SpaceAfter=No" in row[9].split("|") else " "))
    return "".join(pieces).strip()
