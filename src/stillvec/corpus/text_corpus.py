"""A corpus: a stream of paragraphs and sentences that can be read again and is never loaded into memory."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice

from stillvec.corpus.conllu import Parse, read_parses
from stillvec.corpus.plain_text import split_paragraphs
from stillvec.corpus.reader_input import CorpusSettings, ParagraphMode, ReadStats, open_file, text_suffix
from stillvec.corpus.sentence_splitter import sentence_ends, split_sentences
from stillvec.corpus.sources import (
    Pipe,
    Source,
    check_packages,
    is_document,
    is_file_name,
    resolve,
    split_sources,
)
from stillvec.errors import CorpusError, UsageError
from stillvec.input_checks import check_arguments, check_count, check_strings, describe

_BATCH = 4  # paragraphs
_SAMPLED_FILES = 20


@dataclass(frozen=True)
class CorpusReport:
    """Counts of a complete pass over a corpus."""

    files: int
    paragraphs: int
    characters: int
    replaced_bytes: int  # not UTF-8, read as U+FFFD


class Corpus:
    """Files, folders, globs or "-" (standard input) as a stream of paragraphs and sentences.

    >>> corpus = Corpus("texts/", "more/*.jsonl", field="body")  # doctest: +SKIP

    Parameters
    ----------
    sources: files, folders and globs, which may be compressed; "-" is standard input.
    field: the field of JSON lines and Parquet that contains the text, dotted if nested (default: "text").
    paragraphs: "lines", "blocks" (between blank lines) or "auto", which decides for each file (default: auto).
    strict: bytes that are not UTF-8 are an error; else they are read as U+FFFD, with a warning (default: False).
    plain: read Markdown and HTML files as they are, with their markup (default: False).
    """

    def __init__(
        self,
        *sources: str | os.PathLike[str],
        field: str | None = None,
        paragraphs: ParagraphMode = "auto",
        strict: bool = False,
        plain: bool = False,
    ) -> None:
        check_arguments(Corpus, locals())
        settings = CorpusSettings(field, paragraphs, strict, plain=plain)
        files = resolve(sources)
        check_packages(files)
        self._set_up(settings, files, ())

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, paragraphs: ParagraphMode = "auto") -> Corpus:
        """Create a corpus from strings in memory.

        >>> Corpus.from_texts(["The river is cold.", "Bread is warm."])
        Corpus(2 texts)

        Parameters
        ----------
        texts: the texts.
        paragraphs: as for `Corpus` (default: auto).
        """
        check_arguments(Corpus, {"paragraphs": paragraphs})
        corpus = cls.__new__(cls)
        corpus._set_up(CorpusSettings(paragraphs=paragraphs), [], tuple(check_strings(texts, "texts", what="texts")))
        return corpus

    def _set_up(self, settings: CorpusSettings, sources: list[Source], texts: tuple[str, ...]) -> None:
        mode, modes = settings.paragraphs, typing.get_args(ParagraphMode)
        if mode not in modes:
            raise UsageError.unknown("paragraph mode", mode, modes)
        self.settings = settings
        self._sources = tuple(sources)
        self._texts = texts
        self.report: CorpusReport | None = None  # of the last complete pass
        self._warned = False
        self._whole = True

    @property
    def sources(self) -> list[str]:
        """The names of the files, in reading order."""
        return [source.name for source in self._sources]

    @property
    def is_files(self) -> bool:
        """Whether all sources are files, which other processes can open."""
        return bool(self._sources) and not any(isinstance(source, Pipe) for source in self._sources)

    @property
    def drops_paragraphs(self) -> bool:
        """Whether short paragraphs are left out."""
        return self.settings.min_sentences > 1 or self.settings.min_characters > 0

    @property
    def n_bytes(self) -> int:
        """The size of the text, where it is that of plain files; 0: not known before it is read."""
        plain = bool(self._sources) and all(source.is_plain for source in self._sources)
        return sum(source.size for source in self._sources) if plain else 0

    @property
    def size_of_files(self) -> int:
        """In bytes, compressed or not, where all sources are files that any process reads as they are; else 0.

        Pipes can be read once, and documents are converted once, by the process that reads them first.
        """
        as_they_are = self.is_files and not any(map(is_document, self._sources))
        return sum(source.size for source in self._sources) if as_they_are else 0

    def split(self) -> list[Corpus]:
        """Corpora of files or file slices that concatenate to this one; only this one for texts in memory and pipes."""
        parts = split_sources(self._sources, self.settings) if self.is_files else []
        return [self._with_sources(part) for part in parts] if len(parts) > 1 else [self]

    def absolute(self) -> Corpus:
        """The same files with absolute paths."""
        return self._with_sources([Source(source.path.absolute()).watch_like(source) for source in self._sources])

    def drop_short_paragraphs(self, min_sentences: int = 1, min_characters: int = 0) -> Corpus:
        """The same corpus without its short paragraphs.

        >>> corpus = Corpus.from_texts(["Yes.", "The river is cold. Bread is warm."])
        >>> [*corpus.drop_short_paragraphs(min_sentences=2).sentences()]
        ['The river is cold.', 'Bread is warm.']

        Parameters
        ----------
        min_sentences: sentences that a paragraph needs (default: 1).
        min_characters: characters that a paragraph needs (default: 0).
        """
        least = check_count(min_sentences, "min_sentences"), check_count(min_characters, "min_characters", least=0)
        corpus = copy(self)
        corpus.settings = replace(self.settings, min_sentences=least[0], min_characters=least[1])
        return corpus

    def watch(self) -> None:
        """Remember the state of the files: reading other ones later is an error (`check_unchanged`)."""
        for source in self._sources:
            source.watch()

    def check_unchanged(self) -> None:
        """Raise an error if a file changed since `watch`; each file is also checked before and after it is read."""
        for source in self._sources:
            source.check_unchanged()

    def _with_sources(self, sources: list[Source]) -> Corpus:
        corpus = Corpus.__new__(Corpus)
        corpus._set_up(self.settings, sources, ())
        corpus._whole, corpus._warned = False, self._warned
        return corpus

    def __repr__(self) -> str:
        names = [repr(name) for name in self.sources[:3]] or [f"{len(self._texts):,} texts"]
        more = [f"and {len(self._sources) - 3:,} more"] if len(self._sources) > 3 else []
        return f"Corpus({', '.join([*names, *more])})"

    def paragraphs(self) -> Iterator[str]:
        """Yield every paragraph; each call starts from the beginning."""
        stats = ReadStats(strict=self.settings.strict)
        paragraphs = self._read(stats)
        while batch := [*islice(paragraphs, _BATCH)]:  # counting one by one takes as long as reading
            stats.n_paragraphs += len(batch)
            stats.n_characters += sum(map(len, batch))
            yield from batch
        self._finish(stats)

    def paragraphs_by_file(self, wanted: Callable[[int], bool] | None = None) -> Iterator[tuple[int, str]]:
        """Yield (file number, paragraph); texts in memory count as one file.

        Parameters
        ----------
        wanted: whether to read the file of a number, from 1 (default: all files).
        """
        check_arguments(Corpus.paragraphs_by_file, locals())
        stats = ReadStats(strict=self.settings.strict)
        for paragraph in self._read(stats, wanted):
            stats.n_paragraphs += 1
            stats.n_characters += len(paragraph)
            yield stats.n_files, paragraph
        if wanted is None:
            self._finish(stats)

    def sentences(self) -> Iterator[str]:
        """Yield every sentence of every paragraph."""
        for paragraph in self.paragraphs():
            yield from split_sentences(paragraph)

    def sample(self, n_characters: int = 100_000) -> list[str]:
        """Paragraphs from the beginning of some files, spread over all.

        Parameters
        ----------
        n_characters: how much to read, about (default: 100,000).
        """
        check_count(n_characters, "n_characters")
        chosen = self._sources[:: -(-len(self._sources) // _SAMPLED_FILES) or 1]
        parts = [self._with_sources([source]) for source in chosen] or [self]
        sample: list[str] = []
        for part in parts:
            n_left = n_characters // len(parts)
            for paragraph in part._read(ReadStats(strict=self.settings.strict)):
                sample.append(paragraph[:n_left])
                n_left -= len(paragraph)
                if n_left <= 0:
                    break
        return sample

    def parses(self) -> Iterator[Parse]:
        """Yield the dependency parse of every sentence; every file must be CoNLL-U, which is checked at once."""
        others = [source.name for source in self._sources if text_suffix(source.path) != ".conllu"]
        if others or not self._sources:
            what = "CoNLL-U files (.conllu) with dependency parses"
            got = "another file" if others else "texts in memory"
            path, cure = others[0] if others else None, "parse the text first (train --parse)"
            raise CorpusError.expected(what, got, path=path, cure=cure, code="no-parses")
        return self._parses()

    def _parses(self) -> Iterator[Parse]:
        stats = ReadStats(strict=self.settings.strict)
        for source in self._sources:
            source.check_unchanged()
            yield from read_parses(open_file(source.open_path(), source.name), stats)
            source.check_unchanged()

    def _read(self, stats: ReadStats, wanted: Callable[[int], bool] | None = None) -> Iterator[str]:
        paragraphs = self._read_all(stats, wanted)
        return filter(self._is_long, paragraphs) if self.drops_paragraphs else paragraphs

    def _read_all(self, stats: ReadStats, wanted: Callable[[int], bool] | None) -> Iterator[str]:
        for text in self._texts:
            yield from split_paragraphs(text, self.settings.paragraphs)
        for source in self._sources:
            stats.n_files += 1
            if wanted is None or wanted(stats.n_files):
                yield from source.read(self.settings, stats)

    def _is_long(self, paragraph: str) -> bool:
        least = self.settings
        return len(paragraph) >= least.min_characters and len(sentence_ends(paragraph)) >= least.min_sentences

    def _finish(self, stats: ReadStats) -> None:
        if not stats.n_paragraphs and self._whole:
            raise self.empty_error()
        self.report = CorpusReport(stats.n_files, stats.n_paragraphs, stats.n_characters, stats.n_replaced)
        if stats.n_replaced and not self._warned:
            self._warned = True
            stats.warn_replaced()

    def take_report(self, report: CorpusReport, *, warned: bool) -> None:
        """Take over the report of another process that read the corpus, and whether it warned of what it found."""
        self.report, self._warned = report, self._warned or warned

    def empty_error(self) -> CorpusError:
        """The error for a corpus without text, or without paragraphs that are long enough."""
        least, names = self.settings, ", ".join(self.sources[:3]) or "the texts"
        if not self.drops_paragraphs:
            return CorpusError(f"The corpus is empty: no text in {names}; give other files.", code="empty")
        return CorpusError(
            f"No paragraph of {names} has {least.min_sentences} or more sentences and {least.min_characters} or more "
            "characters; lower --min-sentences and --min-characters (1 and 0 keep every paragraph).",
            code="empty",
        )

    def close(self) -> None:
        """Delete the copy of standard input."""
        for source in self._sources:
            source.close()

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


CorpusSource = str | os.PathLike[str] | Corpus | Sequence[str | os.PathLike[str]]


def open_corpus(sources: Sequence[CorpusSource]) -> Corpus | None:
    """One `Corpus`; files, folders and globs, also in lists; or one list of texts. None for nothing.

    A list is taken for texts if each string in it has a space or line break and none of them names a file.
    """
    if len(sources) == 1 and isinstance(sources[0], Corpus):
        return sources[0]
    paths: list[str | os.PathLike[str]] = []
    for source in sources:
        if isinstance(source, str | os.PathLike):
            paths.append(source)
            continue
        if isinstance(source, Corpus | bytes | Mapping) or not isinstance(source, Iterable):
            got = f"{len(sources)} sources" if isinstance(source, Corpus) else describe(source)
            raise UsageError.expected("one Corpus, or files and folders", got, where="corpus")
        items = [*source]
        texts = [item for item in items if isinstance(item, str) and len(item.split()) > 1 and not is_file_name(item)]
        if texts and len(texts) == len(items):
            if len(sources) > 1:
                raise UsageError.expected("one list of texts, or files", f"{len(sources)} sources", where="corpus")
            return Corpus.from_texts(texts)
        paths += items
    return Corpus(*paths) if paths else None
