"""The corpus: where text comes from, read as often as wanted, never held in memory."""

from __future__ import annotations

import os
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import TracebackType

from stillvec.corpus.file_slices import split_sources
from stillvec.corpus.opened_file import open_file, text_suffix
from stillvec.corpus.parses import Parse, read_parses
from stillvec.corpus.plain_text import split_paragraphs
from stillvec.corpus.read_settings import CorpusSettings, ParagraphMode, ReadStats
from stillvec.corpus.sentence_splitter import split_sentences
from stillvec.corpus.sources import Pipe, Source, resolve
from stillvec.errors import CorpusError, StillvecWarning, UsageError, suggest

_TOGETHER = 4  # paragraphs


@dataclass(frozen=True)
class CorpusReport:
    """What a complete reading met."""

    files: int
    paragraphs: int
    characters: int
    replaced_bytes: int  # not UTF-8, read as U+FFFD


class Corpus:
    """Files, folders, globs or "-" (standard input) as a stream of paragraphs and sentences.

    `field` is the field of JSON lines and Parquet that holds the text ("text" if none is given; dotted for
    nested ones). `paragraphs` says whether a paragraph is a line or a block between blank lines; "auto" looks
    at every file.
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
        """A corpus of strings that are in memory."""
        if isinstance(texts, str):
            raise UsageError("Corpus.from_texts takes a list of texts, and one string came; put it into a list.")
        corpus = cls.__new__(cls)
        corpus._set_up(CorpusSettings(paragraphs=paragraphs), [], tuple(texts))
        return corpus

    def _set_up(self, settings: CorpusSettings, sources: list[Source], texts: tuple[str, ...]) -> None:
        mode, modes = settings.paragraphs, typing.get_args(ParagraphMode)
        if mode not in modes:
            raise UsageError(f"There are no paragraphs {mode!r}; {suggest(mode, modes)}")
        self._settings = settings
        self._sources = tuple(sources)
        self._texts = texts
        self._report: CorpusReport | None = None
        self._warned = False
        self._whole = True

    @property
    def settings(self) -> CorpusSettings:
        return self._settings

    @property
    def sources(self) -> list[str]:
        """The files, as they will be read."""
        return [source.name for source in self._sources]

    @property
    def is_files(self) -> bool:
        """Whether all of it is files, which others can open too."""
        return bool(self._sources) and not any(isinstance(source, Pipe) for source in self._sources)

    def split(self) -> list[Corpus]:
        """Corpora that can be read in parallel and concatenate to this one; one for texts in memory and for pipes.

        Each consists of files or of a slice of a large file, and may be empty.
        """
        parts = split_sources(self._sources, self._settings) if self.is_files else []
        return [self._with_sources(part) for part in parts] if len(parts) > 1 else [self]

    def absolute(self) -> Corpus:
        """The same files, wherever one stands."""
        return self._with_sources([Source(source.path.absolute()) for source in self._sources])

    def _with_sources(self, sources: list[Source]) -> Corpus:
        corpus = Corpus.__new__(Corpus)
        corpus._set_up(self._settings, sources, ())
        corpus._whole, corpus._warned = False, self._warned
        return corpus

    @property
    def report(self) -> CorpusReport | None:
        """What the last complete reading met; None before there was one."""
        return self._report

    def __repr__(self) -> str:
        names = [repr(name) for name in self.sources[:3]] or [f"{len(self._texts):,} texts"]
        more = [f"and {len(self._sources) - 3:,} more"] if len(self._sources) > 3 else []
        return f"Corpus({', '.join([*names, *more])})"

    def paragraphs(self) -> Iterator[str]:
        """Every paragraph, from the beginning at every call."""
        stats = ReadStats(strict=self._settings.strict)
        read = self._read(stats)
        while several := [*islice(read, _TOGETHER)]:  # one by one, counting takes as long as reading
            stats.paragraphs += len(several)
            stats.characters += sum(map(len, several))
            yield from several
        self._finish(stats)

    def paragraphs_by_file(self, wanted: Callable[[int], bool] | None = None) -> Iterator[tuple[int, str]]:
        """Every paragraph with the number of its file (texts in memory are one); only of wanted files, if asked."""
        stats = ReadStats(strict=self._settings.strict)
        for paragraph in self._read(stats, wanted):
            stats.paragraphs += 1
            stats.characters += len(paragraph)
            yield stats.files, paragraph
        if wanted is None:
            self._finish(stats)

    def sentences(self) -> Iterator[str]:
        """Every sentence of every paragraph."""
        for paragraph in self.paragraphs():
            yield from split_sentences(paragraph)

    def parses(self) -> Iterator[Parse]:
        """The dependency parse of every sentence; every file has to be CoNLL-U, which is seen at once."""
        others = [source.name for source in self._sources if text_suffix(source.path) != ".conllu"]
        if others or not self._sources:
            what = f"{others[0]} is none" if others else "texts in memory are none"
            raise CorpusError(
                f"Dependency parses are read from CoNLL-U files (.conllu), and {what}; parse it first (train --parse)."
            )
        return self._parses()

    def _parses(self) -> Iterator[Parse]:
        stats = ReadStats(strict=self._settings.strict)
        for source in self._sources:
            yield from read_parses(open_file(source.open_path(), source.name), stats)

    def _read(self, stats: ReadStats, wanted: Callable[[int], bool] | None = None) -> Iterator[str]:
        for text in self._texts:
            yield from split_paragraphs(text, self._settings.paragraphs)
        for source in self._sources:
            stats.files += 1
            if wanted is None or wanted(stats.files):
                yield from source.read(self._settings, stats)

    def _finish(self, stats: ReadStats) -> None:
        if not stats.paragraphs and self._whole:
            names = ", ".join(self.sources[:3]) or "the texts given"
            raise CorpusError(f"The corpus is empty: there is no text at all in {names}; give other files.")
        self._report = CorpusReport(stats.files, stats.paragraphs, stats.characters, stats.replaced_bytes)
        if stats.replaced_bytes and not self._warned:
            self._warned = True
            warnings.warn(
                f"{stats.replaced_bytes:,} bytes are not UTF-8 and were read as U+FFFD (the first in "
                f"{stats.first_place}); if that is too many, convert the text (iconv -f latin1 -t utf8).",
                StillvecWarning,
                stacklevel=3,
            )

    def close(self) -> None:
        """Give back what is held: the copy of standard input."""
        for source in self._sources:
            source.close()

    def __enter__(self) -> Corpus:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
