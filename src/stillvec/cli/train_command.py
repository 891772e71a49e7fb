"""stillvec train: a corpus in, word vectors of a method that needs no teacher out."""

from __future__ import annotations

import argparse

from stillvec.baselines import BASELINES
from stillvec.cli.console import note
from stillvec.cli.progress_bar import watch
from stillvec.corpus import Corpus
from stillvec.lexicons import read_words
from stillvec.pipeline.result_folders import check_folders, saved_steps
from stillvec.pipeline.training_run import Training, TrainingRun


def arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Training()
    parser.add_argument(
        "corpus",
        nargs="+",
        metavar="CORPUS",
        help="files, folders, globs or - (standard input): text, .gz .bz2 .xz .zst, JSON lines, Parquet, CoNLL-U, "
        "a Wikipedia dump",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write")
    parser.add_argument(
        "--method",
        default=defaults.method,
        metavar="NAME[:key=value,...][,NAME...]",
        help=f"default: %(default)s; known are {', '.join(BASELINES)}; several get a folder each",
    )
    parser.add_argument("--dim", type=int, metavar="N", help="dimensions of the result (default: the method's own)")
    parser.add_argument("--min-count", type=int, default=defaults.min_count, metavar="N", help="default: %(default)s")
    parser.add_argument("--max-words", type=int, metavar="N", help="the most frequent N words only")
    parser.add_argument("--keep", metavar="WORDS.txt", help="words and multi-word terms that must be in, one a line")
    parser.add_argument("--cased", action="store_true", help="keep capital letters apart in the vocabulary")
    parser.add_argument("--field", metavar="NAME", help="the field of JSON lines or Parquet that holds the text")
    parser.add_argument("--paragraphs", choices=("auto", "lines", "blocks"), default="auto", help="what a paragraph is")
    parser.add_argument("--strict", action="store_true", help="stop at bytes that are not UTF-8")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument(
        "--unknown",
        metavar="subword[:key=value,...]",
        help="fit character n-grams, for words never seen",
    )
    parser.add_argument(
        "--threads", type=int, metavar="N",
        help="default: as many as there are; with one, the same call gives the same bytes",
    )  # fmt: skip
    parser.add_argument(
        "--parse", nargs="?", const="en_core_web_sm", metavar="PIPELINE",
        help="parse the text with a spaCy pipeline, installed (%(const)s) or in a folder, for those that need parses "
        "(deps, syngcn), and keep the parses; without it they read CoNLL-U",
    )  # fmt: skip
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="where parses and checkpoints are (default: $STILLVEC_CACHE, or a cache folder)",
    )
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint; gensim's begin anew")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace) -> int:
    settings = Training(
        method=options.method,
        dim=options.dim,
        min_count=options.min_count,
        max_words=options.max_words,
        keep=tuple(read_words(options.keep)) if options.keep else (),
        lowercase=not options.cased,
        seed=options.seed,
        unknown=options.unknown,
        threads=options.threads,
        parser=options.parse,
    )
    corpus = Corpus(*options.corpus, field=options.field, paragraphs=options.paragraphs, strict=options.strict)
    work = TrainingRun(settings, corpus, store=options.store, resume=options.resume)
    check_folders(options.out, work.names)
    watch(saved_steps(work, options.out), quiet=options.quiet)
    summary(work)
    return 0


def summary(work: TrainingRun) -> None:
    """A line a method."""
    for name, result in work.results.items():
        vectors, trained = result.vectors, result.manifest["trained"]
        note(
            f"{work.written[name]}: {len(vectors):,} words x {vectors.dim} by {result.manifest['method']}, "
            f"trained in {trained['seconds']:,.0f} s ({trained['words_a_second']:,} words a second)"
        )
