"""Which words of a corpus may be in the vocabulary: stop words, a pattern, numbers."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from stillvec.errors import UsageError, VocabularyError
from stillvec.vocabulary.folding import fold

NumberMode = Literal["keep", "drop"]
_SEPARATORS = re.compile("[ -]")  # of the words of a term


@dataclass(frozen=True)
class WordFilter:
    """Patterns match whole words, in the form in which the vocabulary writes them.

    Of a multi-word term ("new york", "border-radius") each word must match `pattern`; stop words may be inside.
    """

    stop_words: tuple[str, ...] = ()  # left out, in any case
    exclude: str | None = None  # a pattern of words that are left out
    pattern: str | None = None  # of words that stay
    numbers: NumberMode = "keep"  # "drop": words without a letter are left out

    def __post_init__(self) -> None:
        for name in ("exclude", "pattern"):
            text = getattr(self, name)
            try:
                re.compile(text or "")
            except (re.error, OverflowError, RecursionError) as error:
                where = f"setting {name!r}"
                raise UsageError.expected("a regular expression", f"{text!r} ({error})", where=where) from None
        if self.numbers not in ("keep", "drop"):
            raise UsageError.unknown("value", self.numbers, ("keep", "drop"), where="setting 'numbers'")

    @property
    def is_active(self) -> bool:
        """Whether any word may be left out."""
        return self != WordFilter()

    def allows(self, word: str) -> bool:
        """Whether a word or multi-word term may be in the vocabulary."""
        if fold(word, True) in self._stopped or (self._exclude and self._exclude.fullmatch(word)):
            return False
        if self.numbers == "drop" and not any(map(str.isalpha, word)):
            return False
        return not self._pattern or self._matches(self._pattern, word)

    @staticmethod
    def _matches(pattern: re.Pattern[str], word: str) -> bool:
        parts = [part for part in _SEPARATORS.split(word) if part]
        return bool(pattern.fullmatch(word)) or (len(parts) > 1 and all(map(pattern.fullmatch, parts)))

    def apply(self, counts: Mapping[str, int], include_words: Iterable[str] = ()) -> dict[str, int]:
        """The counts of the words that are allowed or included."""
        if not self.is_active:
            return dict(counts)
        included = {*include_words}
        allowed = {word: count for word, count in counts.items() if word in included or self.allows(word)}
        if counts and not allowed:
            raise VocabularyError(
                f"No word is left of {len(counts):,}; change --stop-words, --exclude, --pattern or --numbers.",
                code="no-words",
            )
        return allowed

    @cached_property
    def _stopped(self) -> frozenset[str]:
        return frozenset(fold(word, True) for word in self.stop_words)

    @cached_property
    def _exclude(self) -> re.Pattern[str] | None:
        return None if self.exclude is None else re.compile(self.exclude)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return None if self.pattern is None else re.compile(self.pattern)
