"""`extract_glossary`: terms and their definitions out of a corpus or a folder of Markdown pages."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stillvec.corpus import CorpusSource, open_corpus
from stillvec.corpus.text_corpus import Corpus
from stillvec.errors import CorpusError, UsageError
from stillvec.files import atomic_file, exists_error, inner_suffix, open_bytes
from stillvec.input_checks import check_arguments
from stillvec.lexicons.glossary_forms import FORMS, GlossaryEntry, find_in_markdown, find_in_paragraph

_MARKDOWN = (".md", ".markdown")


@dataclass(frozen=True)
class ExtractedGlossary:
    """Terms with one definition each, in the order in which they were found."""

    entries: tuple[GlossaryEntry, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[GlossaryEntry]:
        return iter(self.entries)

    @property
    def counts(self) -> dict[str, int]:
        """How many were found in each form."""
        counts = Counter(entry.form for entry in self.entries)
        return {form: counts[form] for form in FORMS if counts[form]}

    def dumps(self) -> str:
        """The text of a glossary file: a term, a tab and its definition per line."""
        rows = (f"{' '.join(entry.term.split())}\t{' '.join(entry.definition.split())}\n" for entry in self.entries)
        return "term\tdefinition\n" + "".join(rows)


def extract_glossary(
    *corpus: CorpusSource, out: str | os.PathLike[str] | None = None, force: bool = False
) -> ExtractedGlossary:
    """Find terms and their definitions in text, for the task `glossary` of `evaluate`.

    In Markdown files definition lists, bold terms, tables and headings count; in these and in other text the first
    sentence of a paragraph if it defines a term ("A federation is a union of states that ..."). A term keeps its
    first definition of the most certain form. English.

    Parameters
    ----------
    corpus: files, folders and globs, a `Corpus`, or a list of texts.
    out: a file to write, such as `own/glossaries/mine.tsv` (default: none).
    force: replace an existing file (default: False).
    """
    check_arguments(extract_glossary, {"out": out, "force": force})
    path = None if out is None else Path(out)
    if path is not None and path.exists() and (path.is_dir() or not force):
        raise exists_error(path, "a folder" if path.is_dir() else "a file")
    source = open_corpus(corpus)
    if source is None:
        raise UsageError.expected("a corpus: files, folders or globs", "none")
    best: dict[str, GlossaryEntry] = {}
    for entry in _find(source):
        known = best.get(entry.term.casefold())
        if known is None or FORMS.index(entry.form) < FORMS.index(known.form):
            best[entry.term.casefold()] = entry
    if not best:
        names = [*source.sources[:3], *(["..."] if len(source.sources) > 3 else [])] or ["the texts"]
        raise CorpusError(
            f"No definition was found in {', '.join(names)}; expected one of these forms: {', '.join(FORMS)}.",
            code="no-terms",
        )
    found = ExtractedGlossary(tuple(best.values()))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as part:
            part.write_text(found.dumps(), encoding="utf-8")
    return found


def _find(corpus: Corpus) -> Iterator[GlossaryEntry]:
    pages = [name for name in corpus.sources if inner_suffix(Path(name)).lower() in _MARKDOWN]
    for name in pages:
        with open_bytes(Path(name), CorpusError) as stream:
            yield from find_in_markdown(stream.read().decode("utf-8", "replace"))
    for paragraph in _other_paragraphs(corpus, pages):
        yield from find_in_paragraph(" ".join(paragraph.split()))


def _other_paragraphs(corpus: Corpus, pages: list[str]) -> Iterator[str]:
    """The paragraphs of all files that are not Markdown."""
    if not pages:
        yield from corpus.paragraphs()
        return
    others = [name not in pages for name in corpus.sources]
    for _, paragraph in corpus.paragraphs_by_file(lambda number: others[number - 1]):
        yield paragraph
