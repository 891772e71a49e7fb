"""Counts the words of a stream of texts without a Python loop over known words."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.glued_words import add_joins, find_capitals_inside
from stillvec.vocabulary.latin_matcher import LatinWordMatcher
from stillvec.vocabulary.segmenters import SPACES, WordBreaker, select_terms
from stillvec.vocabulary.token_cache import TokenInterner, needs_slow_path
from stillvec.vocabulary.word_matcher import extend_over_marks, multiword_terms, word_tokenizer

_MAX_TOKENS = 500_000
_MAX_WORD = 1000  # characters; what is longer is data, and its types would fill the memory
_MAX_CHARACTERS = 20_000_000


class WordCounter:
    """Counts whitespace tokens of plain texts, and the words that the Rust tokenizer finds in other texts.

    With more than `max_types` different words the rarest are dropped, which bounds the memory; `include_words` stay.
    """

    def __init__(
        self,
        *,
        lowercase: bool = True,
        include_words: Iterable[str] = (),
        segmenter: str = SPACES,
        max_types: int = 10_000_000,
    ) -> None:
        self.lowercase = lowercase
        self.include_words = [fold(word, lowercase) for word in include_words]
        self.max_types = max_types
        self._breaker = WordBreaker(segmenter, select_terms(segmenter, self.include_words))
        terms = multiword_terms(self.include_words)
        self._known: list[str] = []
        self._counts: NDArray[np.int64] = np.zeros(0, np.int64)
        self._new: Counter[str] = Counter(dict.fromkeys(terms, 0))
        self._add_new_words()
        self._joins: Counter[str] = Counter()  # words with a capital letter inside
        matcher = LatinWordMatcher({}, terms, lowercase)
        self._tokens = _TokenCounter(matcher, {*self.include_words}, max_types, self._joins)

    def add(self, texts: Sequence[str]) -> int:
        """Count the words of `texts`; return how many there are."""
        total, slow = self._tokens.add(texts)
        step = 256 if len(self._known) < 1000 else len(slow)
        return total + sum(self._add_slow(slow[start : start + step]) for start in range(0, len(slow), max(1, step)))

    def counts(self) -> dict[str, int]:
        self._add_new_words()
        counts = self._tokens.counts()
        counts.update(dict(zip(self._known, self._counts.tolist(), strict=True)))
        return {word: count for word, count in counts.items() if count > 0}

    def joins(self) -> dict[str, int]:
        """What may be two words written together, divided: "Solution The" (`glued_words.py`)."""
        self._tokens.counts()
        return dict(self._joins)

    def _add_slow(self, texts: Sequence[str]) -> int:
        batch = [np.zeros(0, np.int64)]
        for text in texts:
            add_joins(self._joins, text)
        texts, _ = self._breaker.insert_all(texts)
        for text, encoding in zip(texts, self._tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            batch.append(np.array(encoding.ids, np.int64))
            unknown = np.flatnonzero(batch[-1] == 0)
            if len(unknown):
                offsets = encoding.offsets
                spans = ((start, extend_over_marks(text, end)) for start, end in (offsets[i] for i in unknown))
                words = (text[start:end] for start, end in spans if end - start <= _MAX_WORD)
                self._new.update(fold(word, self.lowercase) for word in words)
        ids = np.concatenate(batch)
        self._counts += np.bincount(ids, minlength=len(self._known) + 1)[1:]
        if len(self._new) > max(2000, len(self._known) // 4):
            self._add_new_words()
        return len(ids)

    def _add_new_words(self) -> None:
        self._known.extend(self._new)
        self._counts = np.concatenate([self._counts, np.array([*self._new.values()], np.int64)])
        self._new = Counter()
        if len(self._known) > self.max_types:
            self._drop_rare()
        self._tokenizer = word_tokenizer(self._known, self.lowercase)

    def _drop_rare(self) -> None:
        included = set(self.include_words)
        stay = np.fromiter((word in included for word in self._known), bool, len(self._known))
        stay[np.argsort(-self._counts, kind="stable")[: self.max_types // 2]] = True
        self._known = [word for word, stays in zip(self._known, stay, strict=True) if stays]
        self._counts = self._counts[stay]


class _TokenCounter:
    """Counts the words of plain texts; each whitespace token is split into words once."""

    def __init__(self, matcher: LatinWordMatcher, include_words: set[str], max_types: int, joins: Counter[str]) -> None:
        self._matcher, self._include_words, self._max_types, self._joins = matcher, include_words, max_types, joins
        self._word_counts: Counter[str] = Counter()
        self._reset()

    def _reset(self) -> None:
        self._interner = TokenInterner()
        self._words: list[list[str]] = []  # of each token
        self._n_words: NDArray[np.int64] = np.zeros(0, np.int64)  # of each token
        self._plain: NDArray[np.bool_] = np.zeros(0, bool)
        self._counts: NDArray[np.int64] = np.zeros(0, np.int64)

    def add(self, texts: Sequence[str]) -> tuple[int, list[str]]:
        """The number of words of the plain texts, and the other texts."""
        if not self._matcher.splits_on_whitespace:
            return 0, [*texts]
        tokens, n_tokens = self._interner.intern(texts)
        self._split_new()
        slow = needs_slow_path(texts, tokens, n_tokens, self._plain)
        tokens = tokens[~np.repeat(slow, n_tokens)]
        self._counts += np.bincount(tokens, minlength=len(self._counts))
        total = int(self._n_words[tokens].sum())
        if len(self._interner) > min(_MAX_TOKENS, self._max_types) or self._interner.n_characters > _MAX_CHARACTERS:
            self._flush()
        return total, [texts[text] for text in np.flatnonzero(slow).tolist()]

    def counts(self) -> Counter[str]:
        self._flush()
        return Counter(self._word_counts)

    def _split_new(self) -> None:
        new = self._interner.pop_new()
        split = [self._matcher.split_token(token) for token in new]
        self._words += [[word for word in words or () if len(word) <= _MAX_WORD] for words in split]
        self._n_words = np.append(self._n_words, np.array([len(words or []) for words in split], np.int64))
        self._plain = np.append(self._plain, np.array([words is not None for words in split], bool))
        self._counts = np.append(self._counts, np.zeros(len(new), np.int64))

    def _flush(self) -> None:
        """Add the counts of the tokens to those of their words, and drop the tokens."""
        counts = self._word_counts
        for words, count in zip(self._words, self._counts.tolist(), strict=True):
            for word in words:
                counts[word] += count
        for token in find_capitals_inside(self._interner):
            add_joins(self._joins, token, int(self._counts[self._interner[token]]))
        if len(counts) > self._max_types:
            included = {word: counts[word] for word in self._include_words if word in counts}
            self._word_counts = Counter(dict(counts.most_common(self._max_types // 2)) | included)
        self._reset()
