"""Dependency parses from CoNLL-U: forms, heads and relations of each sentence."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from stillvec.corpus.conllu import is_number, split_columns
from stillvec.corpus.decoding import read_records
from stillvec.corpus.opened_file import OpenedFile
from stillvec.corpus.read_settings import ReadStats
from stillvec.errors import CorpusError


@dataclass(frozen=True)
class Parse:
    """A sentence and its dependency tree."""

    forms: tuple[str, ...]  # (N,)
    heads: tuple[int, ...]  # (N,) index of each head, -1 for the root
    relations: tuple[str, ...]  # (N,) to the head


def read_parses(opened: OpenedFile, stats: ReadStats) -> Iterator[Parse]:
    """Yield the parse of each sentence; multi-word tokens (3-4) and empty nodes (5.1) have no heads and are skipped."""
    rows: list[tuple[str, str, str, str]] = []  # number, form, head, relation
    first_line = 0
    for line_number, line in enumerate(chain(read_records(opened, stats), [""]), 1):
        if not line.strip():
            if rows:
                yield _parse(rows, opened.name, first_line)
            rows = []
        elif not line.startswith("#"):
            row = split_columns(line, opened.name, line_number)
            if row[0].isdecimal():
                first_line = first_line if rows else line_number
                rows.append((row[0], row[1], row[6], row[7]))


def _parse(rows: list[tuple[str, str, str, str]], name: str, first_line: int) -> Parse:
    for index, (number, _, head, _) in enumerate(rows, 1):
        if number != str(index) or not is_number(head) or not 0 <= int(head) <= len(rows) or head == number:
            raise CorpusError.expected(
                "a dependency parse (words numbered from 1, each with the number of its head, 0 for the root)",
                f"number {number[:20]!r} and head {head[:20]!r} for word {index} of the sentence",
                path=name,
                line=first_line,
                cure="correct it, or parse the text again",
                code="bad-parse",
            )
    return Parse(
        tuple(form for _, form, _, _ in rows),
        tuple(int(head) - 1 for _, _, head, _ in rows),
        tuple(relation for _, _, _, relation in rows),
    )
