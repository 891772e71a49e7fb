"""A corpus: a stream of paragraphs and sentences that can be read again and is never loaded into memory."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from stillvec.corpus.conllu import Parse, read_parses
from stillvec.corpus.plain_text import split_paragraphs
from stillvec.corpus.reader_input import CorpusSettings, ParagraphMode, ReadStats, open_file, text_suffix
from stillvec.corpus.sentence_splitter import split_sentences
from stillvec.corpus.sources import Pipe, Source, resolve, split_sources
from stillvec.errors import CorpusError, UsageError

_BATCH = 4  # paragraphs


@dataclass(frozen=True)
class CorpusReport:
    """Counts of a complete pass over a corpus."""

    files: int
    paragraphs: int
    characters: int
    replaced_bytes: int  # not UTF-8, read as U+FFFD


class Corpus:
    """Files, folders, globs or "-" (standard input) as a stream of paragraphs and sentences.

    `field` is the field of JSON lines and Parquet that contains the text (default: "text"; dotted if nested).
    `paragraphs` is "lines", "blocks" (between blank lines) or "auto", which decides for each file. With `strict`, bytes
    that are not UTF-8 raise an error; otherwise they are read as U+FFFD, with a warning.
    """

    def __init__(
        self,
        *sources: str | os.PathLike[str],
        field: str | None = None,
        paragraphs: ParagraphMode = "auto",
        strict: bool = False,
    ) -> None:
        self._set_up(CorpusSettings(field, paragraphs, strict), resolve(sources), ())

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, paragraphs: ParagraphMode = "auto") -> Corpus:
        """Create a corpus from strings in memory."""
        if isinstance(texts, str):
            raise UsageError.expected("a list of texts", "one string", where="Corpus.from_texts")
        corpus = cls.__new__(cls)
        corpus._set_up(CorpusSettings(paragraphs=paragraphs), [], tuple(texts))
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
    def n_bytes(self) -> int:
        """The size of the text, where it is that of plain files; 0: not known before it is read."""
        plain = bool(self._sources) and all(source.is_plain for source in self._sources)
        return sum(source.size for source in self._sources) if plain else 0

    def split(self) -> list[Corpus]:
        """Corpora of files or file slices that concatenate to this one; only this one for texts in memory and pipes."""
        parts = split_sources(self._sources, self.settings) if self.is_files else []
        return [self._with_sources(part) for part in parts] if len(parts) > 1 else [self]

    def absolute(self) -> Corpus:
        """The same files with absolute paths."""
        return self._with_sources([Source(source.path.absolute()).watch_like(source) for source in self._sources])

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
        """Yield (file number, paragraph); texts in memory count as one file. `wanted` selects files by number."""
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
        for text in self._texts:
            yield from split_paragraphs(text, self.settings.paragraphs)
        for source in self._sources:
            stats.n_files += 1
            if wanted is None or wanted(stats.n_files):
                yield from source.read(self.settings, stats)

    def _finish(self, stats: ReadStats) -> None:
        if not stats.n_paragraphs and self._whole:
            names = ", ".join(self.sources[:3]) or "the texts"
            raise CorpusError(f"The corpus is empty: no text in {names}; give other files.", code="empty")
        self.report = CorpusReport(stats.n_files, stats.n_paragraphs, stats.n_characters, stats.n_replaced)
        if stats.n_replaced and not self._warned:
            self._warned = True
            stats.warn_replaced()

    def close(self) -> None:
        """Delete the copy of standard input."""
        for source in self._sources:
            source.close()

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
