"""Text in, sentences out: any files, folders, globs or standard input, streamed."""

from stillvec.corpus.corpus import Corpus, CorpusReport
from stillvec.corpus.dictionary import read_dictionary, read_words
from stillvec.corpus.splitting import sentence_ends, split_sentences

__all__ = ["Corpus", "CorpusReport", "read_dictionary", "read_words", "sentence_ends", "split_sentences"]
