"""Dependency parses from CoNLL-U: forms, heads and relations of each sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stillvec.corpus.conllu import is_number, split_columns
from stillvec.corpus.decoding import read_records
from stillvec.corpus.opened_file import OpenedFile
from stillvec.corpus.read_settings import ReadStats
from stillvec.errors import CorpusError


@dataclass(frozen=True)
class Parse:
    """A sentence and its tree."""

    forms: tuple[str, ...]  # (N,)
    heads: tuple[int, ...]  # (N,) place of each head, -1 for the root
    relations: tuple[str, ...]  # (N,) to the head


def read_parses(opened: OpenedFile, stats: ReadStats) -> Iterator[Parse]:
    """Tokens of several words (3-4) and empty nodes (5.1) are passed over: only words have heads."""
    rows: list[tuple[str, str, str, str]] = []  # number, form, head, relation
    begun = 0
    number = 0
    for number, line in enumerate(read_records(opened, stats), 1):
        if not line.strip():
            if rows:
                yield _parse(rows, f"{opened.name}:{begun}")
            rows = []
        elif not line.startswith("#"):
            row = split_columns(line, f"{opened.name}:{number}")
            if row[0].isdecimal():
                begun = begun if rows else number
                rows.append((row[0], row[1], row[6], row[7]))
    if rows:
        yield _parse(rows, f"{opened.name}:{begun}")


def _parse(rows: list[tuple[str, str, str, str]], where: str) -> Parse:
    for place, (number, _, head, _) in enumerate(rows, 1):
        if number != str(place) or not is_number(head) or not 0 <= int(head) <= len(rows) or head == number:
            raise CorpusError(
                "A dependency parse was wanted, words numbered from 1 and each with the number of its head (0: root); "
                f"in the sentence that begins at {where} word {place} has the number {number!r} and the head {head!r}: "
                "correct it, or parse the text anew."
            )
    return Parse(
        tuple(form for _, form, _, _ in rows),
        tuple(int(head) - 1 for _, _, head, _ in rows),
        tuple(relation for _, _, _, relation in rows),
    )
