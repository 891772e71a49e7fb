"""Which words there are, how often they were seen, and where they stand in a text."""

from stillvec.vocabulary.counting import WordCounter
from stillvec.vocabulary.finding import Found, WordFinder
from stillvec.vocabulary.vocabulary import Vocabulary

__all__ = ["Found", "Vocabulary", "WordCounter", "WordFinder"]
