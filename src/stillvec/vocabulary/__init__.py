"""Which words there are, how often they were seen, and where they stand in a text."""

from stillvec.vocabulary.word_counter import WordCounter
from stillvec.vocabulary.word_index import Vocabulary
from stillvec.vocabulary.word_matcher import WordMatcher, WordSpans

__all__ = ["Vocabulary", "WordCounter", "WordMatcher", "WordSpans"]
