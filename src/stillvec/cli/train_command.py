"""stillvec train: a corpus in, word vectors of a method that needs no teacher out."""

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from stillvec.baselines import BASELINES
from stillvec.cli.console import report_vectors
from stillvec.cli.flags import List, add_cache, add_common, add_oov, add_renamed
from stillvec.cli.progress_bar import show_events
from stillvec.corpus import Corpus
from stillvec.lexicons import read_words
from stillvec.pipeline.result_folders import locate_results
from stillvec.pipeline.settings import SharedSettings, Training
from stillvec.registry import Registry
from stillvec.vectors import WordVectors
from stillvec.verbs.baseline_training import train_all
from stillvec.vocabulary.function_words import LANGUAGES
from stillvec.vocabulary.segmenters import AUTO, SEGMENTERS, SPACES

CORPUS_HELP = (
    "files, folders, globs or - (standard input): text, Markdown, HTML, PDF, DOCX, EPUB, JSON lines, Parquet, "
    "CoNLL-U, a Wikipedia dump; also as .gz .bz2 .xz .zst"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("corpus", nargs="+", metavar="CORPUS", help=CORPUS_HELP)
    add_common(parser, "--out", "--force")
    add_settings(parser, Training(), BASELINES, "several get a folder each")
    threads = "CPU threads; with 1, the result is reproducible to the byte (default: one per core)"
    add("--threads", type=int, metavar="N", help=threads)
    parsing = (
        "parse the text with a spaCy pipeline, installed (%(const)s) or in a folder, for methods that need parses "
        "(deps, syngcn), and cache the parses; without it they read CoNLL-U"
    )
    add("--parse", dest="parser", nargs="?", const="en_core_web_sm", metavar="PIPELINE", help=parsing)
    contexts = "keep the context vectors, one per word, beside the vectors (skipgram, cbow, fasttext, glove, sent2vec)"
    add("--context-table", action="store_true", help=contexts)
    add_cache(parser, "parses and checkpoints are cached (default: $STILLVEC_CACHE, or the user's cache)")
    resume = "continue from the last checkpoint; gensim's methods start over"
    add("--resume", action="store_true", help=resume)
    add_common(parser, "--quiet")


def add_settings(
    parser: argparse.ArgumentParser, defaults: SharedSettings, methods: Registry[Any], several: str
) -> None:
    """The settings that distill and train share: method, words, fields of the corpus."""
    add = parser.add_argument
    names = f"one or several of {', '.join(methods)}; {several} (default: {defaults.method})"
    add("--method", metavar="NAME[:key=value,...][,NAME...]", help=names)
    add("--list-methods", action=List, const=methods, help="list all methods with their settings")
    add_common(parser, "--dim")
    least = f"minimum number of occurrences of a word (default: {defaults.min_count})"
    add("--min-count", type=int, metavar="N", help=least)
    add("--max-words", type=int, metavar="N", help="keep only the N most frequent words")
    words = "words and multi-word terms to include, one per line"
    add_renamed(parser, "--keep", add("--include-words", metavar="WORDS.txt", help=words))
    languages = "a language (" + ", ".join(LANGUAGES) + ") or a file with a word per line"
    add("--stop-words", metavar="LANGUAGE|FILE", help=f"words to leave out: {languages}")
    add("--exclude", metavar="REGEX", help="leave out words that fully match this regular expression")
    add("--pattern", metavar="REGEX", help="keep only words that fully match this regular expression")
    numbers = f"drop: leave out words without a letter (default: {defaults.numbers})"
    add("--numbers", choices=("keep", "drop"), help=numbers)
    phrases = "find phrases of two or three words in the corpus and add them to the vocabulary"
    add("--phrases", action="store_const", const=True, help=phrases)
    score = f"minimum association of the words of a phrase, from 0 to 1 (default: {defaults.phrase_score})"
    add("--phrase-score", type=float, metavar="X", help=score)
    hyphens = f"keep: frequent hyphenated words stay whole (default: {defaults.hyphens})"
    add("--hyphens", choices=("split", "keep"), help=hyphens)
    add("--min-sentences", type=int, metavar="N", help="drop paragraphs with fewer sentences")
    add("--min-characters", type=int, metavar="N", help="drop paragraphs with fewer characters")
    cased = "distinguish upper and lower case in the vocabulary"
    add("--cased", action="store_const", const=True, help=cased)
    words = (
        f"what a word is: {SPACES}, or a segmenter of scripts without spaces ({', '.join(SEGMENTERS)}), several "
        f"separated by commas; {AUTO} looks at the text (default: {AUTO})"
    )
    add("--words", dest="segmenter", metavar="auto|spaces|NAME[,...]", help=words)
    add("--field", metavar="NAME", help="the field of JSON lines or Parquet that has the text")
    units = "paragraphs are lines, or blocks between empty lines; auto looks at the text (default: %(default)s)"
    add("--paragraphs", choices=("auto", "lines", "blocks"), default="auto", help=units)
    add("--plain", action="store_true", help="read Markdown and HTML files as they are, with their markup")
    add("--strict", action="store_true", help="stop at bytes that are not UTF-8")
    add("--seed", type=int, metavar="N", help=f"random seed (default: {defaults.seed})")
    add_oov(parser, "fit character n-grams for out-of-vocabulary words")


def settings_of(options: argparse.Namespace, kind: type[Any]) -> dict[str, Any]:
    """The settings that were given as flags, by the names of the fields of `kind`."""
    names = [field.name for field in fields(kind) if field.name != "lowercase"]
    values = {name: getattr(options, name) for name in names}
    given = {name: value for name, value in values.items() if value is not None and value is not False}
    if options.include_words:
        given["include_words"] = read_words(options.include_words)
    return given | ({"lowercase": False} if options.cased else {})


def corpus_of(options: argparse.Namespace) -> list[Corpus]:
    """The corpus that the flags name, or an empty list."""
    if not options.corpus:
        return []
    names = ("field", "paragraphs", "strict", "plain")
    return [Corpus(*options.corpus, **{name: getattr(options, name) for name in names})]


def run(options: argparse.Namespace) -> int:
    given = {name: getattr(options, name) for name in ("out", "force", "context_cache", "resume")}
    with show_events(quiet=options.quiet) as listener:
        results = train_all(*corpus_of(options), **settings_of(options, Training), **given, progress=listener)
    print_results(results, options.out)
    listener.print_time()
    return 0


def print_results(results: Mapping[str, WordVectors], out: str | Path) -> None:
    """A line per method: where it was written, its size, and how long training took."""
    for name, vectors in results.items():
        trained, pace = vectors.provenance.get("trained"), ""
        if trained:
            pace = f", trained in {trained['seconds']:,.0f} s ({trained['words_a_second']:,} words per second)"
        folder = locate_results(out, results)[name]
        report_vectors(folder, vectors, f" by {vectors.provenance['method']}{pace}")
