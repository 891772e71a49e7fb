"""The words of a corpus or a vector space, their counts, and their positions in texts."""

from stillvec.vocabulary.word_counter import WordCounter
from stillvec.vocabulary.word_filter import WordFilter
from stillvec.vocabulary.word_index import Vocabulary
from stillvec.vocabulary.word_matcher import WordMatcher, WordSpans

__all__ = ["Vocabulary", "WordCounter", "WordFilter", "WordMatcher", "WordSpans"]
