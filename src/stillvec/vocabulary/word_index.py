"""The words of a space in order of frequency, with their counts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import VocabularyError
from stillvec.vocabulary.folding import fold


class Vocabulary:
    """Words, each with its row number and its count in the corpus (0 where it is not known).

    `lowercase` says that the words are lower-cased, so that a question about "Paris" means "paris".
    """

    def __init__(
        self, words: Iterable[str], counts: Iterable[int] | None = None, *, lowercase: bool | None = None
    ) -> None:
        self.words: tuple[str, ...] = tuple(words)
        values = np.zeros(len(self.words), np.int64) if counts is None else np.array([*counts], np.int64)
        if len(values) != len(self.words):
            raise VocabularyError(f"A vocabulary of {len(self.words)} words came with {len(values)} counts.")
        values.setflags(write=False)
        self.counts: NDArray[np.int64] = values
        self.lowercase = all(w == w.lower() for w in self.words) if lowercase is None else lowercase
        if len(self.index) != len(self.words):
            twice = next(word for row, word in enumerate(self.words) if self.index[word] != row)
            raise VocabularyError(f"The word {twice!r} is in the vocabulary twice; each word has one row.")

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def digest(self) -> str:
        """A short name for these words in this order."""
        return hashlib.blake2b("\n".join(self.words).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.row(word) is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        same = self.words == other.words and self.lowercase == other.lowercase
        return same and bool(np.array_equal(self.counts, other.counts))

    __hash__ = None  # type: ignore[assignment]  # it compares by content, and the content is large

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} words, {int(self.counts.sum()):,} seen)"

    def row(self, word: str) -> int | None:
        """The row of a word as it is written, else as the vocabulary would write it, else None."""
        row = self.index.get(word)
        return self.index.get(fold(word, self.lowercase)) if row is None else row

    def frequencies(self) -> NDArray[np.float64]:
        """Relative frequency of each word; words never counted get the share of half an occurrence."""
        counts = np.maximum(self.counts.astype(np.float64), 0.5)
        return np.asarray(counts / counts.sum())

    def union(self, other: Vocabulary) -> Vocabulary:
        """All words of both, counts added, again in order of frequency."""
        counts = dict(zip(self.words, self.counts.tolist(), strict=True))
        for word, count in zip(other.words, other.counts.tolist(), strict=True):
            counts[word] = counts.get(word, 0) + count
        return _ordered(counts, lowercase=self.lowercase and other.lowercase)

    def rows_in(self, other: Vocabulary) -> NDArray[np.int64]:
        """For each of our words, its row in `other`; -1 where `other` does not have it."""
        return np.fromiter((other.index.get(word, -1) for word in self.words), np.int64, len(self))

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        *,
        min_count: int = 5,
        max_words: int | None = None,
        keep: Iterable[str] = (),
        lowercase: bool = True,
    ) -> Vocabulary:
        """The words seen at least `min_count` times, the `max_words` most frequent, and all of `keep`."""
        kept = dict.fromkeys(folded for word in keep if (folded := fold(word, lowercase)))
        chosen = {word: count for word, count in counts.items() if count >= min_count and word not in kept}
        room = None if max_words is None else max(0, max_words - len(kept))
        ordered = sorted(chosen.items(), key=lambda item: (-item[1], item[0]))[:room]
        final = dict(ordered) | {word: counts.get(word, 0) for word in kept}
        if not final:
            most = max(counts.values(), default=0)
            raise VocabularyError(
                f"No word is left: of {len(counts):,} different words the most frequent was seen {most:,} "
                f"times, and the minimum is {min_count:,}; lower --min-count or give more text."
            )
        return _ordered(final, lowercase=lowercase)


def _ordered(counts: Mapping[str, int], *, lowercase: bool) -> Vocabulary:
    items = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Vocabulary([word for word, _ in items], [count for _, count in items], lowercase=lowercase)
