"""stillvec train: a corpus in, word vectors of a method that needs no teacher out."""

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from stillvec.baselines import BASELINES
from stillvec.cli.console import note
from stillvec.cli.list_action import List
from stillvec.cli.progress_bar import show_events
from stillvec.cli.renamed_flags import add_renamed
from stillvec.corpus import Corpus
from stillvec.lexicons import read_words
from stillvec.pipeline.settings import Training
from stillvec.vectors import WordVectors
from stillvec.verbs.baseline_training import train_all

CORPUS_HELP = (
    "files, folders, globs or - (standard input): text, .gz .bz2 .xz .zst, JSON lines, Parquet, CoNLL-U, "
    "a Wikipedia dump"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Training()
    parser.add_argument("corpus", nargs="+", metavar="CORPUS", help=CORPUS_HELP)
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write")
    parser.add_argument(
        "--method",
        default=defaults.method,
        metavar="NAME[:key=value,...][,NAME...]",
        help=f"one or several of {', '.join(BASELINES)}; several get a folder each (default: %(default)s)",
    )
    parser.add_argument("--list-methods", action=List, const=BASELINES, help="list all methods with their settings")
    parser.add_argument("--dim", type=int, metavar="N", help="dimensions of the result (default: the method's own)")
    add_vocabulary_arguments(parser, defaults.min_count)
    parser.add_argument(
        "--threads", type=int, metavar="N",
        help="CPU threads; with one, the same call gives the same bytes (default: one per core)",
    )  # fmt: skip
    parser.add_argument(
        "--parse", dest="parser", nargs="?", const="en_core_web_sm", metavar="PIPELINE",
        help="parse the text with a spaCy pipeline, installed (%(const)s) or in a folder, for methods that need parses "
        "(deps, syngcn), and cache the parses; without it they read CoNLL-U",
    )  # fmt: skip
    cache = parser.add_argument(
        "--context-cache", metavar="DIR",
        help="where parses and checkpoints are cached (default: $STILLVEC_CACHE, or the user's cache)",
    )  # fmt: skip
    add_renamed(parser, "--store", cache)
    parser.add_argument(
        "--resume", action="store_true", help="continue from the last checkpoint; methods of gensim start again"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def add_vocabulary_arguments(parser: argparse.ArgumentParser, min_count: int) -> None:
    """The flags that distill and train share: which words, from which fields of the corpus."""
    parser.add_argument("--min-count", type=int, default=min_count, metavar="N", help="default: %(default)s")
    parser.add_argument("--max-words", type=int, metavar="N", help="the most frequent N words only")
    include = parser.add_argument(
        "--include-words", metavar="WORDS.txt", help="words and multi-word terms to include, one per line"
    )
    add_renamed(parser, "--keep", include)
    parser.add_argument("--cased", action="store_true", help="distinguish upper and lower case in the vocabulary")
    parser.add_argument("--field", metavar="NAME", help="the field of JSON lines or Parquet that has the text")
    parser.add_argument(
        "--paragraphs", choices=("auto", "lines", "blocks"), default="auto",
        help="a paragraph is a line, a block between empty lines, or as the text suggests (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="stop at bytes that are not UTF-8")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: %(default)s")
    oov = parser.add_argument(
        "--oov", metavar="subword[:key=value,...]", help="fit character n-grams for out-of-vocabulary words"
    )
    add_renamed(parser, "--unknown", oov)


def settings_of(options: argparse.Namespace, kind: type[Any]) -> dict[str, Any]:
    """The settings that the flags say, by the names of the fields of `kind`."""
    values = {field.name: getattr(options, field.name) for field in fields(kind) if field.name != "lowercase"}
    values["include_words"] = read_words(options.include_words) if options.include_words else ()
    return values | {"lowercase": not options.cased}


def corpus_of(options: argparse.Namespace) -> list[Corpus]:
    """The corpus that the flags name, or an empty list."""
    if not options.corpus:
        return []
    return [Corpus(*options.corpus, field=options.field, paragraphs=options.paragraphs, strict=options.strict)]


def run(options: argparse.Namespace) -> int:
    with show_events(quiet=options.quiet) as listener:
        results = train_all(
            *corpus_of(options),
            **settings_of(options, Training),
            out=options.out,
            context_cache=options.context_cache,
            resume=options.resume,
            progress=listener,
        )
    print_results(results, options.out)
    return 0


def print_results(results: Mapping[str, WordVectors], out: str | Path) -> None:
    """A line per method: where it was written, its size, and how long training took."""
    for name, vectors in results.items():
        folder = Path(out) / name if len(results) > 1 else out
        trained = vectors.provenance.get("trained")
        pace = ""
        if trained:
            pace = f", trained in {trained['seconds']:,.0f} s ({trained['words_a_second']:,} words per second)"
        note(f"{folder}: {len(vectors):,} words x {vectors.dim} by {vectors.provenance['method']}{pace}")
