"""`train` and `train_all`: word vectors from a corpus alone, by methods that need no teacher."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stillvec.baselines import BASELINES
from stillvec.corpus import CorpusSource
from stillvec.errors import UsageError
from stillvec.files import check_not_input, lock_outputs, remove_abandoned
from stillvec.formats.request import load_finished
from stillvec.formats.stillvec_folder import LAYOUT
from stillvec.input_checks import check_arguments
from stillvec.pipeline.result_folders import check_folders, find_finished
from stillvec.pipeline.settings import Training, parse_methods
from stillvec.progress import Progress, show_progress
from stillvec.result import Result
from stillvec.vectors import WordVectors
from stillvec.verbs.distillation import Arguments, execute, split_arguments, with_parameters_of
from stillvec.vocabulary.segmenters import AUTO

if TYPE_CHECKING:
    from stillvec.pipeline.training_run import TrainingRun


def train(
    *corpus: CorpusSource,
    method: str = "skipgram",
    dim: int | None = None,
    min_count: int = 5,
    max_words: int | None = None,
    include_words: Sequence[str] = (),
    stop_words: str | Sequence[str] = (),
    exclude: str | None = None,
    pattern: str | None = None,
    numbers: Literal["keep", "drop"] = "keep",
    phrases: bool = False,
    phrase_score: float = 0.5,
    hyphens: Literal["split", "keep"] = "split",
    min_sentences: int | None = None,
    min_characters: int | None = None,
    lowercase: bool = True,
    segmenter: str = AUTO,
    seed: int = 0,
    oov: str | None = None,
    threads: int | None = None,
    parser: str | None = None,
    context_table: bool = False,
    out: str | os.PathLike[str] | None = None,
    context_cache: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    progress: bool | Callable[[Progress], object] = False,
) -> WordVectors:
    """Train word vectors on a corpus, without a teacher.

    Parameters are those of `distill`, except:
    method: a baseline, with settings as in "glove:epochs=25" (default: skipgram). For several use `train_all`.
    threads: CPU threads; with one, the same call gives the same bytes (default: one per core).
    parser: a spaCy pipeline for methods that need parses (default: they read CoNLL-U).
    context_table: keep the context vectors that skipgram, cbow, fasttext, glove and sent2vec train beside those of the
        words, as `contexts` of the result (default: False).
    context_cache: where parses and checkpoints are cached (default: $STILLVEC_CACHE or the user's cache).
    resume: continue from the last checkpoint; gensim's methods start over (default: False).
    """
    check_arguments(train, {"method": method})
    if len(parse_methods(method, BASELINES)) > 1:
        raise UsageError(
            "train() returns the vectors of one method; for several call train_all().", code="several-methods"
        )
    return next(iter(_train(Arguments(locals())).values())).vectors


@with_parameters_of(train)
def train_all(arguments: Arguments) -> dict[str, WordVectors]:
    """Train several methods on the same sentences, and return their vectors by name.

    Parameters are those of `train`, except:
    method: one or several, separated by commas ("skipgram:epochs=5,glove").
    out: with several results, each is a folder inside it.
    """
    return {name: result.vectors for name, result in _train(arguments).items()}


def check_training(corpus: Sequence[CorpusSource], arguments: Mapping[str, Any]) -> None:
    """Refuse before the work what `train_all` with these arguments would refuse."""
    _prepare(Arguments.bind(inspect.signature(train), *corpus, **arguments))


def _train(arguments: Arguments) -> dict[str, Result]:
    run, targets = _prepare(arguments)
    with lock_outputs(targets, LAYOUT), show_progress(arguments["progress"]) as listener:
        if targets:
            run.finished = find_finished(arguments["out"], run.requests(), force=arguments["force"])
        if len(run.finished) == len(run.names) and not arguments["resume"]:  # a resumed run removes its checkpoints
            remove_abandoned(Path(tempfile.gettempdir()))
            return {name: Result(load_finished(folder)) for name, folder in run.finished.items()}
        return execute(run, arguments["out"], listener, force=arguments["force"])


def _prepare(arguments: Arguments) -> tuple[TrainingRun, list[str | os.PathLike[str]]]:
    """The run, and the folders that it writes."""
    from stillvec.pipeline.training_run import TrainingRun

    corpus, settings, options = split_arguments(Training, arguments)
    if corpus is None:
        raise UsageError.expected("files, folders, globs or one Corpus", "nothing", where="corpus")
    out = options["out"]
    run = TrainingRun(settings, corpus, store=options["context_cache"], resume=options["resume"])
    if out is None:
        return run, []
    targets = check_folders(out, run.requests(), force=options["force"])
    for target in targets:
        check_not_input(target, corpus.sources, LAYOUT)
    return run, [out, *targets]
