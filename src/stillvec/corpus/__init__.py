"""Text in, sentences out: any files, folders, globs or standard input, streamed."""

from stillvec.corpus.definitions import read_dictionary, read_words
from stillvec.corpus.sentence_splitter import sentence_ends, split_sentences
from stillvec.corpus.text_corpus import Corpus, CorpusReport

__all__ = ["Corpus", "CorpusReport", "read_dictionary", "read_words", "sentence_ends", "split_sentences"]
