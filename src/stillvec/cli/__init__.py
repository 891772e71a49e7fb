"""The command line: one file per command, each over a plain function; the only package that prints.

A command's file has `arguments(parser)` and `run(options) -> int`. Only the command that is called is imported.
"""

import argparse
import errno
import importlib
import io
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stillvec import __version__
from stillvec.cli.console import forget_finished
from stillvec.cli.flags import check_reports, separate_json
from stillvec.cli.process_clock import start_clock
from stillvec.cli.terminal_text import escape_controls, warn
from stillvec.errors import (
    MissingExtra,
    StillvecError,
    StillvecWarning,
    UsageError,
    is_out_of_memory,
    out_of_memory,
    suggest,
)
from stillvec.files import cache_folder

VERBS = {  # in the order a new user meets them
    "demo": "distil the packaged teacher on the packaged corpus, evaluate and plot the result",
    "distill": "distil word vectors from a teacher and a corpus",
    "adapt": "change a teacher before it is distilled, step by step",
    "train": "train word vectors on a corpus without a teacher: skip-gram, GloVe and others",
    "evaluate": "evaluate vectors, side by side",
    "datasets": "list the evaluation datasets and where to get others",
    "glossary": "find terms and their definitions in text, to evaluate with",
    "nearest": "show the nearest words of a word",
    "analogy": "solve an analogy: A is to B as C is to ?",
    "encode": "compute the vectors of texts",
    "fit": "train a small model on vectors: a classifier or a tagger",
    "predict": "predict the labels of texts with a fitted model",
    "refine": "improve vectors of the same words, step by step",
    "attention": "show what the words of a sentence attend to",
    "combine": "combine several sets of vectors into one",
    "analyze": "analyze the geometry of vectors and what their components encode",
    "explore": "browse vectors in a page: neighbours, analogies, axes, a map",
    "index": "index documents for search with vectors",
    "search": "search an index of documents",
    "merge": "merge results that were distilled separately",
    "convert": "convert vectors from one file format to another",
    "push": "upload vectors to the Hugging Face Hub",
    "info": "describe vectors, a teacher or a corpus",
    "serve": "serve vectors over HTTP, also as OpenAI's embeddings",
    "run": "run a recipe: a whole experiment in a TOML file",
    "cache": "list or clear caches and what killed runs left behind",
    "completion": "print a script for shell completion",
}
_RECEIVED: list[int] = []  # a signal that ended a command
_DISTILL_PACKAGES = ("torch", "transformers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done, 1 failed, 2 the call was wrong, 130 interrupted."""
    start_clock(whole_process=arguments is None)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # closed by the caller (>&-)
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files need not be text
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder() / "torchinductor"))  # not in /tmp: it has code
    forget_finished()
    command = next((word for word in words if not word.startswith("-")), None)
    try:
        with _plain_warnings():
            options = _parse(words, command)
            check_reports(options)
        with _plain_warnings(), _log_warnings(quiet=getattr(options, "quiet", False)), _interrupt_on_signals():
            code: int = importlib.import_module(f"stillvec.cli.{options.verb}_command").run(options)
        sys.stdout.flush()
        return code
    except StillvecError as error:
        return _fail(str(error), 2 if isinstance(error, UsageError) else 1)
    except ModuleNotFoundError as error:
        if error.name not in _DISTILL_PACKAGES:
            raise
        return _fail(str(MissingExtra(error.name, "distill", f"stillvec {command}")), 1)
    except BrokenPipeError:  # the reader of our output (head, less) has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:  # its message says how to continue
        code = 128 + _RECEIVED.pop() if _RECEIVED else 130
        return _fail(str(interrupt) or "interrupted; no partial output was left.", code)
    except (OSError, MemoryError, RuntimeError, ImportError) as error:
        if is_out_of_memory(error):
            return _fail(str(out_of_memory(f"running stillvec {command}", distills=command == "distill")), 1)
        if not isinstance(error, OSError):
            raise
        name = (error.errno == errno.ENOSPC and error.filename2) or error.filename  # of a copy, the second one is full
        place = f": {name}" if name else "; no partial output was left"
        return _fail(f"{error.strerror or error}{place}.", 1)


class CommandParser(argparse.ArgumentParser):
    """Arguments that may be several (`predict HEAD --explain TEXT`) can stand before, between and after flags."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        args = separate_json(self, args)
        positional = self._get_positional_actions()
        if not any(action.nargs in ("*", "+") for action in positional):
            return super().parse_known_args(args, namespace)
        plain = argparse.ArgumentParser.parse_known_args
        vars(self)["parse_known_args"] = plain.__get__(self)  # which parse_known_intermixed_args calls
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            del vars(self)["parse_known_args"]


def _parse(words: list[str], command: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stillvec", description="Distil contextual language models into static word vectors, on your own text."
    )
    parser.add_argument("-V", "--version", action="version", version=f"stillvec {__version__}")
    if command is not None and command not in VERBS:
        parser.error(f"unknown command {command!r}; {suggest(command, VERBS)}")
    commands = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, summary in VERBS.items():
        subparser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == command:
            importlib.import_module(f"stillvec.cli.{name}_command").arguments(subparser)
    return parser.parse_args(words)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show our own warnings as one sentence, without the place in the source."""
    usual = warnings.formatwarning

    def format_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> str:
        if issubclass(category, StillvecWarning):
            return escape_controls(f"stillvec: {message}\n")
        return usual(message, category, *place, **more)

    warnings.formatwarning = format_warning
    try:
        yield
    finally:
        warnings.formatwarning = usual


@contextmanager
def _interrupt_on_signals() -> Iterator[None]:
    """Clean up after SIGTERM (docker stop, Slurm) and SIGHUP (a closed terminal) as after Ctrl+C."""
    process = os.getpid()

    def interrupt(number: int, frame: object) -> None:
        if os.getpid() != process:  # a forked worker
            os._exit(128 + number)
        _RECEIVED.append(number)
        raise KeyboardInterrupt

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in (getattr(signal, name) for name in names) if _is_default(number)]
    _RECEIVED.clear()
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    except Exception:
        if _RECEIVED:  # a library failed while the interrupt passed through it
            raise KeyboardInterrupt from None
        raise
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _is_default(number: int) -> bool:
    """Whether a signal ends this process; nohup and a program around us may handle it."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(number) is signal.SIG_DFL


@contextmanager
def _log_warnings(*, quiet: bool) -> Iterator[None]:
    """Show warnings of our loggers on standard error while a command runs."""
    logger, handler = logging.getLogger("stillvec"), logging.StreamHandler()
    handler.setLevel(logging.CRITICAL if quiet else logging.WARNING)
    handler.setFormatter(logging.Formatter("Note: %(message)s"))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _fail(message: str, code: int) -> int:
    warn(f"stillvec: {message}")
    return code
