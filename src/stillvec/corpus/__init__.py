"""Text in, paragraphs and sentences out: files, folders, globs or standard input, streamed."""

from stillvec.corpus.sentence_splitter import sentence_ends, split_sentences
from stillvec.corpus.text_corpus import Corpus, CorpusReport, CorpusSource, open_corpus

__all__ = ["Corpus", "CorpusReport", "CorpusSource", "open_corpus", "sentence_ends", "split_sentences"]
