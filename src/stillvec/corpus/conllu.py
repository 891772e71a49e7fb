"""CoNLL-U: sentences from `# text`, or their forms joined; `# newpar` and `# newdoc` begin paragraphs."""

from collections.abc import Iterator
from itertools import chain

from stillvec.corpus.decoding import MAX_PARAGRAPH, cut, read_records
from stillvec.corpus.opened_file import OpenedFile
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.errors import CorpusError

_N_COLUMNS = 10


def read_conllu(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Yield paragraphs; in a file that marks none, every sentence is one."""
    paragraph: list[str] = []
    marked = False
    for sentence, opens in _read_sentences(opened, stats):
        if paragraph and (opens or not marked or sum(map(len, paragraph)) > MAX_PARAGRAPH):
            yield " ".join(paragraph)
            paragraph = []
        marked = marked or opens
        paragraph.extend(cut(sentence))
    if paragraph:
        yield " ".join(paragraph)


def _read_sentences(opened: OpenedFile, stats: ReadStats) -> Iterator[tuple[str, bool]]:
    """Yield (sentence, whether it begins a paragraph)."""
    text, opens = "", False
    rows: list[list[str]] = []
    for number, line in enumerate(chain(read_records(opened, stats), [""]), 1):
        if not line.strip():
            if text or rows:
                yield text or _join_forms(rows), opens
            text, opens, rows = "", False, []
        elif line.startswith("#"):
            key, _, value = line[1:].partition("=")
            text = value.strip() if key.strip() == "text" else text
            opens = opens or key.split()[:1] in (["newpar"], ["newdoc"])
        else:
            rows.append(split_columns(line, opened.name, number))


def split_columns(line: str, name: str, number: int) -> list[str]:
    row = line.split("\t")
    if len(row) != _N_COLUMNS:
        raise CorpusError.expected(
            f"{_N_COLUMNS} columns separated by tabs (CoNLL-U)",
            f"{len(row)}",
            path=name,
            line=number,
            cure="correct the line, or name the file .txt if it has another format",
        )
    return row


def is_number(text: str) -> bool:
    """Whether a text can be a token number; `int` refuses thousands of digits."""
    return text.isdecimal() and len(text) < 10


def _join_forms(rows: list[list[str]]) -> str:
    """Join forms with spaces, except after SpaceAfter=No; skip the parts of a multi-word token (3-4)."""
    pieces: list[str] = []
    inside = 0
    for row in rows:
        number, _, last = row[0].partition("-")
        if "." in number or (not last and is_number(number) and int(number) <= inside):
            continue
        inside = int(last) if is_number(last) else inside
        pieces.append(row[1] + ("" if "SpaceAfter=No" in row[9].split("|") else " "))
    return "".join(pieces).strip()
