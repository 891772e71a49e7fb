"""`train` and `train_all`: word vectors from a corpus alone, by methods that need no teacher."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from stillvec.errors import UsageError
from stillvec.pipeline.settings import Training, parse_methods
from stillvec.progress import Progress, show_progress
from stillvec.registry import settings_from
from stillvec.vectors import WordVectors
from stillvec.verbs.distillation import Source, corpus_of, execute

if TYPE_CHECKING:
    from stillvec.pipeline.training_run import TrainingRun
    from stillvec.result import Result


def train(
    *corpus: Source,
    method: str = "skipgram",
    dim: int | None = None,
    min_count: int = 5,
    max_words: int | None = None,
    include_words: Sequence[str] = (),
    lowercase: bool = True,
    seed: int = 0,
    oov: str | None = None,
    threads: int | None = None,
    parser: str | None = None,
    out: str | os.PathLike[str] | None = None,
    context_cache: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool | Callable[[Progress], object] = False,
) -> WordVectors:
    """Train word vectors on a corpus, without a teacher.

    Parameters
    ----------
    corpus: files, folders, globs, lists of them, or one `Corpus`.
    method: a baseline, with settings as in "glove:epochs=25" (default: skipgram). For several use `train_all`.
    dim: dimensions of the result (default: the method's own).
    min_count: occurrences that a word needs to be in the vocabulary (default: 5).
    max_words: the size of the vocabulary, most frequent words first (default: no limit).
    include_words: words and multi-word terms in the vocabulary whatever their count (default: none).
    lowercase: fold the vocabulary to lower case (default: True).
    seed: of everything random (default: 0).
    oov: "subword" fits character n-grams for out-of-vocabulary words (default: none).
    threads: CPU threads; with one, the same call gives the same bytes (default: one per core).
    parser: a spaCy pipeline for methods that need parses (default: they read CoNLL-U).
    out: the folder to write (default: nothing is written).
    context_cache: where parses and checkpoints are cached (default: $STILLVEC_CACHE or the user's cache).
    resume: continue from the last checkpoint; methods of gensim start again (default: False).
    progress: True draws a bar in a terminal; a function gets every `Progress` event (default: False).
    """
    if len(parse_methods(method, _baselines())) > 1:
        raise UsageError(
            "train() returns the vectors of one method; for several call train_all().", code="several-methods"
        )
    return next(iter(_train(locals()).values())).vectors


def train_all(
    *corpus: Source,
    method: str = "skipgram",
    dim: int | None = None,
    min_count: int = 5,
    max_words: int | None = None,
    include_words: Sequence[str] = (),
    lowercase: bool = True,
    seed: int = 0,
    oov: str | None = None,
    threads: int | None = None,
    parser: str | None = None,
    out: str | os.PathLike[str] | None = None,
    context_cache: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool | Callable[[Progress], object] = False,
) -> dict[str, WordVectors]:
    """Train several methods on the same sentences; the vectors by the name of the method.

    The parameters are those of `train`; `method` takes several, separated by commas ("skipgram:epochs=5,glove"). With
    several, each result is a folder inside `out`.
    """
    return {name: result.vectors for name, result in _train(locals()).items()}


def check_training(corpus: Sequence[Source], **given: Any) -> None:
    """Refuse before the work what `train_all` with these arguments would refuse."""
    _prepare({"corpus": corpus, **given})


def _train(given: Mapping[str, Any]) -> dict[str, Result]:
    run = _prepare(given)
    with show_progress(given["progress"]) as listener:
        return execute(run, given["out"], listener)


def _prepare(given: Mapping[str, Any]) -> TrainingRun:
    from stillvec.pipeline.result_folders import check_folders
    from stillvec.pipeline.training_run import TrainingRun

    names = {field.name for field in fields(Training)}
    settings = settings_from(Training, {name: value for name, value in given.items() if name in names})
    corpus = corpus_of(given["corpus"])
    if corpus is None:
        raise UsageError.expected("files, folders, globs or one Corpus", "nothing", where="corpus")
    run = TrainingRun(settings, corpus, store=given["context_cache"], resume=given["resume"])
    if given["out"] is not None:
        check_folders(given["out"], run.names)
    return run


def _baselines() -> Any:
    from stillvec.baselines import BASELINES

    return BASELINES
