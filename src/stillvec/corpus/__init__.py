"""Text in, paragraphs and sentences out: files, folders, globs or standard input, streamed."""

from stillvec.corpus.sentence_splitter import sentence_ends, split_sentences
from stillvec.corpus.text_corpus import Corpus, CorpusReport

__all__ = ["Corpus", "CorpusReport", "sentence_ends", "split_sentences"]
