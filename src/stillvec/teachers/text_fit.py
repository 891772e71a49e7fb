"""How well the subword tokens of a teacher fit a text (Wu & Dredze 2020): tokens per word, unknown tokens, coverage.

A word in many tokens is one whose spelling the teacher's tokenizer has hardly met; its states are weak, and so are
vectors distilled from them. Words are those that the library finds everywhere (`vocabulary/word_matcher.py`): a pattern
of letters alone would cut Hindi at its vowel signs, and make it look easy.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from stillvec.teachers.subword_tokenizer import SubwordTokenizer, align
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.segmenters import SPACES

THRESHOLDS = (1, 2, 5, 10, 100)  # of the coverage curve
_MANY = 4  # tokens of a word
_MAX_MANY = 0.15  # share of words in that many tokens from which on a teacher does not fit
_MAX_UNKNOWN = 0.05  # share of words with an unknown token


@dataclass(frozen=True)
class TextFit:
    """What a tokenizer makes of the words of a text."""

    n_words: int
    n_tokens: int  # of all words; a token that covers two words counts for both
    n_whole: int  # words that are one token
    n_many: int  # words of four tokens or more
    n_unknown: int  # words with an unknown token
    coverage: dict[int, float]  # threshold → share of the teacher's tokens that occur at least so often

    @property
    def tokens_per_word(self) -> float:
        return self.n_tokens / max(self.n_words, 1)

    @property
    def many(self) -> float:
        """The share of words of four tokens or more."""
        return self.n_many / max(self.n_words, 1)

    @property
    def unknown(self) -> float:
        """The share of words with an unknown token."""
        return self.n_unknown / max(self.n_words, 1)

    @property
    def fits(self) -> bool:
        return self.many < _MAX_MANY and self.unknown < _MAX_UNKNOWN

    def to_dict(self) -> dict[str, object]:
        """All numbers, for JSON."""
        return asdict(self) | {"tokens_per_word": self.tokens_per_word, "fits": self.fits}

    def describe(self) -> str:
        """One sentence for the start of a run."""
        unknown = f", {self.unknown:.1%} with unknown tokens" if self.n_unknown else ""
        facts = f"{self.tokens_per_word:.2f} tokens per word, {self.many:.1%} of words in {_MANY} or more{unknown}"
        if self.fits:
            return f"the teacher's tokens and this text: {facts}"
        cure = "vectors of these words will be weak; a teacher of this language or a multilingual one fits better"
        return f"the teacher does not fit this text: {facts}; {cure} (stillvec info TEACHER --texts FILE)"


def measure_fit(tokenizer: SubwordTokenizer, texts: Sequence[str], segmenter: str = SPACES) -> TextFit:
    """Tokenize texts, and compare tokens with words."""
    words = WordMatcher(Vocabulary((), segmenter=segmenter)).match(texts)
    tokens = tokenizer.encode(texts)
    token, word = align(tokens, words)
    per_word = np.bincount(word, minlength=len(words.ids))
    unknown = np.zeros(len(words.ids), bool)
    unknown[word[tokens.ids[token] == tokenizer.unknown_id]] = True
    unknown |= per_word == 0
    counts = np.bincount(tokens.ids[tokens.ids != tokenizer.unknown_id])
    size = max(tokenizer.size, 1)
    return TextFit(
        n_words=len(per_word),
        n_tokens=int(np.maximum(per_word, 1).sum()),
        n_whole=int((per_word == 1).sum()),
        n_many=int((per_word >= _MANY).sum()),
        n_unknown=int(unknown.sum()),
        coverage={least: int((counts >= least).sum()) / size for least in THRESHOLDS},
    )
