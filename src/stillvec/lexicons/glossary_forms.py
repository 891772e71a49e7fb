"""Definitions of terms in Markdown and in plain text, by the forms in which writers give them.

    definition list   a line with the term, then a line that begins with `:`; or `- term` and `- : definition` below it
    bold item         `**term**: definition`, `- **term** is ...`, at the beginning of a line
    table             a row of a table with a column for terms and one for definitions
    heading           a heading or title, and a first sentence that begins with the same words: "X is ..."
    sentence          "A federation is a union of states that ...": at most four words, then "is a", "is the", ...

Precision comes before recall: a sentence counts only at the beginning of a paragraph, its subject must not be a pronoun
or a general noun (example, goal, difference), and what follows must not be an opinion (important, best). English.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from stillvec.corpus import sentence_ends

FORMS = ("definition list", "bold item", "table", "heading", "sentence")
_MIN_WORDS, _MAX_WORDS = 4, 80  # of a definition
_MAX_TERM = 4  # words
_TERM_COLUMNS = ("term", "terms", "word", "name", "concept", "abbreviation", "acronym")
_MEANING_COLUMNS = ("definition", "definitions", "meaning", "description", "explanation")
_LISTS = tomllib.loads(files("stillvec.lexicons").joinpath("glossary_words.toml").read_text("utf-8"))
_NO_SUBJECT, _GENERAL, _OPINIONS = (frozenset(_LISTS[name].split()) for name in ("no_subject", "general", "opinions"))
_WORDS = re.compile(r"[^\W\d_][\w'’-]*")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]")
_MACRO = re.compile(r"\{\{\s*\w+\(?([^}]*?)\)?\s*\}\}")
_MARKS = re.compile(r"</?[A-Za-z][^>]*>|\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|\[\^[^\]]*\]")
_DANGLING = re.compile(r"\s*\(\s*\w?\s*\)|,? as shown in\W*$")  # what is left of references to figures
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$")
_MARKED = re.compile(r"\s*(?:#|\||>|:|[-*+]\s|\d+[.)]\s|---)")  # the beginning of a heading, table, list or quotation
_ENDED = re.compile(r"\s*(?:#|\|)")  # lines that the next one does not continue
_TITLE = re.compile(r"title:\s*[\"']?(.+?)[\"']?$")
_BOLD = re.compile(
    r"\s*(?:[-*+]\s+|\d+[.)]\s+)?\*\*(?P<term>[^*]{2,60}?)(?P<colon>:)?\*\*\s*(?:\([^)]{1,40}\)\s*)?"
    r"(?P<mark>:|[-–—]\s|(?:is|are|means|refers to)\s)?\s*(?P<definition>.+)$"
)
_SUBJECT = r"(?:(?P<article>An?|The)\s+)?(?P<term>[\w'’-]+(?: [\w'’-]+){0,3}?)"
_BRACKET = r"(?: \([^)]{1,40}\))?"
_VERB = r"(?P<verb>is defined as|are defined as|refers? to|is|are|means)"
_SENTENCE = re.compile(rf"{_SUBJECT}{_BRACKET},? {_VERB} (?P<definition>(?:(?P<first>an?|the|any|when)\b)?.+)$")


class GlossaryEntry(NamedTuple):
    term: str
    definition: str
    form: str  # one of FORMS


def find_in_markdown(text: str) -> Iterator[GlossaryEntry]:
    """The definitions in a Markdown page; code blocks are left out."""
    title, body = _split_front_matter(text.splitlines())
    lines = _join_lines(_drop_code(body))
    yield from _definition_lists(lines)
    yield from _tables(lines)
    for line in lines:
        found = _BOLD.match(line)
        if found and (found["colon"] or found["mark"]):
            yield from _accept(clean(found["term"]), clean(found["definition"]), "bold item")
    yield from _headings(title, lines)
    for line in filter(_is_prose, lines):
        yield from find_in_paragraph(clean(line))


def find_in_paragraph(text: str) -> Iterator[GlossaryEntry]:
    """The definition that the first sentence of a paragraph gives, if it is one."""
    found = _SENTENCE.match(_first_sentence(text))
    if not found or (not found["first"] and found["verb"] in ("is", "are", "means")):
        return
    words = found["term"].lower().split()
    rest = found["definition"].split()
    likely = not (_NO_SUBJECT | _GENERAL).intersection(words) and _is_noun_phrase(words)
    opening = rest[1].strip(",.").lower() if found["first"] and len(rest) > 1 else ""
    neutral = opening not in _OPINIONS and not opening.endswith("ly")
    if likely and neutral and len(rest) >= 7:
        yield from _accept(_lower_first(found["term"]), found["definition"], "sentence")


def clean(text: str) -> str:
    """Markdown as plain text: without links, macros, emphasis and code marks."""
    text = _LINK.sub(lambda link: link[1] or link[2] or "", text)
    text = _MACRO.sub(lambda macro: macro[1].rpartition(",")[2].strip(" \"'"), text)
    return " ".join(_MARKS.sub("", text).split())


def _accept(term: str, definition: str, form: str) -> Iterator[GlossaryEntry]:
    """The entry, if its term is one and its definition has neither too few nor too many words."""
    definition = _DANGLING.sub("", _first_sentence(definition)).strip(".;,: ")
    n_words = len(_WORDS.findall(definition))
    plausible = 0 < len(term.split()) <= _MAX_TERM and _WORDS.search(term) and not re.search(r"[.?!:;|<>{}=]", term)
    if plausible and _MIN_WORDS <= n_words <= _MAX_WORDS and not definition.endswith("?"):
        yield GlossaryEntry(term, definition, form)


def _is_noun_phrase(words: Sequence[str]) -> bool:
    """No word of a term ends like an adverb, and `of` is inside."""
    inside = "of" not in (words[0], words[-1]) and len(words[0]) > 1
    return inside and not any(word.endswith("ly") and len(word) > 4 for word in words)


def _first_sentence(text: str) -> str:
    ends = [end for end in sentence_ends(text) if end]
    return text[: ends[0]].strip() if ends else text.strip()


def _lower_first(term: str) -> str:
    """`Federalism` → `federalism`; `DNA` and `Clean Air Act` stay."""
    return term[0].lower() + term[1:] if term[1:] == term[1:].lower() else term


def _drop_code(lines: Sequence[str]) -> list[str]:
    kept, fence = [], ""
    for line in lines:
        mark = line.strip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        elif not fence:
            kept.append(line)
    return kept


def _definition_lists(lines: Sequence[str]) -> Iterator[GlossaryEntry]:
    for before, line in pairwise(lines):
        found = re.match(r"\s*(?:[-*]\s+)?:\s+(.+)$", line)
        term = re.sub(r"^\s*[-*]\s+", "", before).strip()
        if found and term and not term.startswith((":", "|", "#")):
            yield from _accept(clean(term), clean(found[1]), "definition list")


def _tables(lines: Sequence[str]) -> Iterator[GlossaryEntry]:
    columns: tuple[int, int] | None = None
    for line in lines:
        cells = [clean(cell) for cell in line.strip().strip("|").split("|")] if "|" in line else []
        if not cells:
            columns = None
        elif columns is None:
            names = [cell.lower() for cell in cells]
            places = [
                next((at for at, name in enumerate(names) if name in wanted), -1)
                for wanted in (_TERM_COLUMNS, _MEANING_COLUMNS)
            ]
            columns = (places[0], places[1]) if min(places) >= 0 else None
        elif len(cells) > max(columns) and not set(line.strip()) <= set("|-: "):
            yield from _accept(cells[columns[0]], cells[columns[1]], "table")


def _headings(title: str, lines: Sequence[str]) -> Iterator[GlossaryEntry]:
    """A title or heading whose first paragraph begins with the same words and a verb of definition."""
    for line in lines:
        if found := _HEADING.match(line):
            title = clean(found[1])
        elif title and _is_prose(line):
            sentence = _SENTENCE.match(_first_sentence(clean(line)))
            if sentence and sentence["term"].casefold() == title.casefold():
                yield from _accept(title, sentence["definition"], "heading")
            title = ""


def _is_prose(line: str) -> bool:
    return bool(line.strip()) and not _MARKED.match(line)


def _split_front_matter(lines: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The title in the lines between `---` at the beginning, and the lines after them."""
    if not lines or lines[0].strip() != "---":
        return "", lines
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
    titles = [found[1] for line in lines[:end] if (found := _TITLE.match(line))]
    return clean(titles[0]) if titles else "", lines[end + 1 :] if end else lines


def _join_lines(lines: Sequence[str]) -> list[str]:
    """One line per paragraph, list item and row of a table; empty lines stay."""
    joined: list[str] = []
    for line in lines:
        if joined and line.strip() and joined[-1].strip() and not _MARKED.match(line) and not _ENDED.match(joined[-1]):
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    return joined
