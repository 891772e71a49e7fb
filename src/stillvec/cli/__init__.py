"""The command line: one file a verb, each over a plain function; the only room that prints.

A verb's file has `HELP`, `arguments(parser)` and `run(options) -> int`. argparse, not a framework: the distilling core
must run where nothing but torch, transformers and numpy is installed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from stillvec import __version__
from stillvec.errors import MissingExtra, StillvecError

VERBS = {  # in the order a newcomer meets them
    "demo": "the packaged teacher on the packaged corpus, scored and drawn",
    "distill": "a teacher and a corpus in, word vectors out",
    "train": "a corpus in, word vectors out without a teacher: skip-gram, GloVe and others",
    "evaluate": "how good vectors are, side by side",
    "datasets": "which tests there are, and where others are from",
    "nearest": "the nearest words of a word",
    "analogy": "what is to C as B is to A",
    "refine": "better vectors of the same words, step by step",
    "attention": "what the words of a sentence attend to",
    "combine": "one space of several",
    "analyze": "what a space is like, and what its components know",
    "explore": "a page to look at vectors: neighbours, analogies, axes, a map",
    "merge": "one result from several distilled apart",
    "convert": "vectors from one file format to another",
    "info": "what vectors, a teacher or a corpus are",
    "serve": "vectors over HTTP, also as OpenAI's embeddings",
    "run": "a recipe: a whole run in a TOML file",
    "completion": "a script with which a shell completes all this",
}

_WITH_DISTILL = ("torch", "transformers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb. 0: done; 1: it failed and said why; 2: the call was wrong."""
    parser = argparse.ArgumentParser(
        prog="stillvec", description="Distil contextual language models into static word vectors, on your own text."
    )
    parser.add_argument("-V", "--version", action="version", version=f"stillvec {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = next((word for word in words if not word.startswith("-")), None)
    for verb, summary in VERBS.items():
        sub = verbs.add_parser(verb, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if verb == asked:  # only the verb that is asked for is imported
            try:
                importlib.import_module(f"stillvec.cli.{verb}_command").arguments(sub)
            except ModuleNotFoundError as error:
                if error.name not in _WITH_DISTILL:
                    raise
                print(f"stillvec: {MissingExtra(error.name, 'distill', f'stillvec {verb}')}", file=sys.stderr)
                return 1
    options = parser.parse_args(words)
    try:
        code: int = importlib.import_module(f"stillvec.cli.{options.verb}_command").run(options)
        sys.stdout.flush()
        return code
    except StillvecError as error:
        print(f"stillvec: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output (head, less) has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("stillvec: stopped; nothing half-written was left.", file=sys.stderr)
        return 1
    except OSError as error:
        place = f": {error.filename}" if error.filename else "; nothing half-written was left"
        print(f"stillvec: {error.strerror or error}{place}.", file=sys.stderr)
        return 1
