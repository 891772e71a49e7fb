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
from stillvec.pipeline.settings import Distillation, Training
from stillvec.registry import Registry
from stillvec.vectors import WordVectors
from stillvec.verbs.baseline_training import train_all

CORPUS_HELP = (
    "files, folders, globs or - (standard input): text, .gz .bz2 .xz .zst, JSON lines, Parquet, CoNLL-U, "
    "a Wikipedia dump"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("corpus", nargs="+", metavar="CORPUS", help=CORPUS_HELP)
    add_common(parser, "--out", "--force")
    add_settings(parser, Training(), BASELINES, "several get a folder each")
    threads = "CPU threads; with one, the same call gives the same bytes (default: one per core)"
    add("--threads", type=int, metavar="N", help=threads)
    parsing = (
        "parse the text with a spaCy pipeline, installed (%(const)s) or in a folder, for methods that need parses "
        "(deps, syngcn), and cache the parses; without it they read CoNLL-U"
    )
    add("--parse", dest="parser", nargs="?", const="en_core_web_sm", metavar="PIPELINE", help=parsing)
    add_cache(parser, "parses and checkpoints are cached (default: $STILLVEC_CACHE, or the user's cache)")
    resume = "continue from the last checkpoint; methods of gensim start again"
    add("--resume", action="store_true", help=resume)
    add_common(parser, "--quiet")


def add_settings(
    parser: argparse.ArgumentParser, defaults: Distillation | Training, methods: Registry[Any], several: str
) -> None:
    """The settings that distill and train share: method, words, fields of the corpus."""
    add = parser.add_argument
    names = f"one or several of {', '.join(methods)}; {several} (default: %(default)s)"
    add("--method", default=defaults.method, metavar="NAME[:key=value,...][,NAME...]", help=names)
    add("--list-methods", action=List, const=methods, help="list all methods with their settings")
    add_common(parser, "--dim")
    add("--min-count", type=int, default=defaults.min_count, metavar="N", help="default: %(default)s")
    add("--max-words", type=int, metavar="N", help="the most frequent N words only")
    words = "words and multi-word terms to include, one per line"
    add_renamed(parser, "--keep", add("--include-words", metavar="WORDS.txt", help=words))
    add("--cased", action="store_true", help="distinguish upper and lower case in the vocabulary")
    add("--field", metavar="NAME", help="the field of JSON lines or Parquet that has the text")
    units = "a paragraph is a line, a block between empty lines, or as the text suggests (default: %(default)s)"
    add("--paragraphs", choices=("auto", "lines", "blocks"), default="auto", help=units)
    add("--strict", action="store_true", help="stop at bytes that are not UTF-8")
    add("--seed", type=int, default=0, metavar="N", help="default: %(default)s")
    add_oov(parser, "fit character n-grams for out-of-vocabulary words")


def settings_of(options: argparse.Namespace, kind: type[Any]) -> dict[str, Any]:
    """The settings that the flags say, by the names of the fields of `kind`."""
    values = {field.name: getattr(options, field.name) for field in fields(kind) if field.name != "lowercase"}
    words = read_words(options.include_words) if options.include_words else ()
    return values | {"include_words": words, "lowercase": not options.cased}


def corpus_of(options: argparse.Namespace) -> list[Corpus]:
    """The corpus that the flags name, or an empty list."""
    if not options.corpus:
        return []
    return [Corpus(*options.corpus, field=options.field, paragraphs=options.paragraphs, strict=options.strict)]


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
        folder = Path(out) / name if len(results) > 1 else out
        report_vectors(folder, vectors, f" by {vectors.provenance['method']}{pace}")
