"""CoNLL-U as text (`# text`, or the forms joined; `# newpar` and `# newdoc` begin paragraphs) or as parses."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from stillvec.corpus.decoding import MAX_PARAGRAPH, cut, read_records
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats
from stillvec.errors import CorpusError

_N_COLUMNS = 10
_MAX_SENTENCE = 1 << 26  # bytes of a sentence in memory; more is no sentence
_LINE_BYTES = 1000  # of the objects that a line is split into
Row = tuple[int, list[str]]  # the number of a line and its columns


@dataclass(frozen=True)
class Parse:
    """A sentence and its dependency tree."""

    forms: tuple[str, ...]  # (N,)
    heads: tuple[int, ...]  # (N,) index of each head, -1 for the root
    relations: tuple[str, ...]  # (N,) to the head


def read_conllu(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Yield paragraphs; in a file that marks none, every sentence is one."""
    paragraph: list[str] = []
    marked = False
    for comments, rows in _read_sentences(opened, stats):
        texts = [value.strip() for key, value in comments if key.strip() == "text"]
        sentence = texts[-1] if texts and texts[-1] else _join_forms(rows)
        if not sentence and not rows:
            continue
        opens = any(key.split()[:1] in (["newpar"], ["newdoc"]) for key, _ in comments)
        if paragraph and (opens or not marked or sum(map(len, paragraph)) > MAX_PARAGRAPH):
            yield " ".join(paragraph)
            paragraph = []
        marked = marked or opens
        paragraph.extend(cut(sentence))
    if paragraph:
        yield " ".join(paragraph)


def read_parses(opened: OpenedFile, stats: ReadStats) -> Iterator[Parse]:
    """Yield the parse of each sentence; multi-word tokens (3-4) and empty nodes (5.1) have no heads and are skipped."""
    for _, rows in _read_sentences(opened, stats):
        if words := [(line, row) for line, row in rows if row[0].isdecimal()]:
            yield _parse(words, opened.name)


def _read_sentences(opened: OpenedFile, stats: ReadStats) -> Iterator[tuple[list[tuple[str, str]], list[Row]]]:
    """Yield the (key, value) of the comments and the rows of each sentence."""
    comments: list[tuple[str, str]] = []
    rows: list[Row] = []
    n_bytes = 0
    for number, line in enumerate(chain(read_records(opened, stats), [""]), 1):
        if not line.strip():
            yield comments, rows
            comments, rows, n_bytes = [], [], 0
            continue
        n_bytes += len(line) + _LINE_BYTES
        if n_bytes > _MAX_SENTENCE:
            got = f"one of {len(comments) + len(rows):,} lines and more"
            raise CorpusError.expected("a blank line after each sentence", got, path=opened.name, line=number)
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            comments.append((key, value))
        else:
            row = line.split("\t")
            if len(row) != _N_COLUMNS:
                what = f"{_N_COLUMNS} columns separated by tabs (CoNLL-U)"
                cure = "correct the line, or name the file .txt if it has another format"
                raise CorpusError.expected(what, len(row), path=opened.name, line=number, cure=cure)
            rows.append((number, row))


def _is_number(text: str) -> bool:
    """Whether a text can be a token number; `int` refuses thousands of digits."""
    return text.isdecimal() and len(text) < 10


def _join_forms(rows: list[Row]) -> str:
    """Join forms with spaces, except after SpaceAfter=No; skip the parts of a multi-word token (3-4)."""
    pieces: list[str] = []
    inside = 0
    for _, row in rows:
        number, _, last = row[0].partition("-")
        if "." in number or (not last and _is_number(number) and int(number) <= inside):
            continue
        inside = int(last) if _is_number(last) else inside
        pieces.append(row[1] + ("" if "SpaceAfter=No" in row[9].split("|") else " "))
    return "".join(pieces).strip()


def _parse(words: list[Row], name: str) -> Parse:
    rows = [row for _, row in words]
    for index, row in enumerate(rows, 1):
        number, head = row[0], row[6]
        if number != str(index) or not _is_number(head) or not 0 <= int(head) <= len(words) or head == number:
            what = "a dependency parse (words numbered from 1, each with the number of its head, 0 for the root)"
            got = f"number {number[:20]!r} and head {head[:20]!r} for word {index} of the sentence"
            cure = "correct it, or parse the text again"
            raise CorpusError.expected(what, got, path=name, line=words[0][0], cure=cure, code="bad-parse")
    forms, heads, relations = ([row[column] for row in rows] for column in (1, 6, 7))
    return Parse(tuple(forms), tuple(int(head) - 1 for head in heads), tuple(relations))
