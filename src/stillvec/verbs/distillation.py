"""`distill`, `distill_all` and `plan`: word vectors from a teacher and a corpus, and what that will take."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from stillvec.corpus import Corpus, CorpusSource, open_corpus
from stillvec.errors import UsageError, is_out_of_memory, out_of_memory
from stillvec.files import check_not_input, check_place, lock_outputs
from stillvec.formats.request import load_finished
from stillvec.formats.stillvec_folder import LAYOUT
from stillvec.input_checks import check_arguments
from stillvec.memory import MemoryWatch, require_memory
from stillvec.pipeline.corpus_counts import select_text
from stillvec.pipeline.count_pool import PendingCount, start_count
from stillvec.pipeline.previous_result import inherit_settings
from stillvec.pipeline.result_folders import check_folders, find_finished, save_steps
from stillvec.pipeline.settings import (
    CONTEXTS,
    Distillation,
    Training,
    parse_methods,
    read_stop_words,
    resolve_presets,
)
from stillvec.progress import Listener, Phase, Progress, Timeline, drain, show_progress
from stillvec.registry import require_all, settings_from
from stillvec.result import Result
from stillvec.teachers import PACKAGED
from stillvec.teachers.gpu_driver import start_driver
from stillvec.vectors import WordVectors
from stillvec.verbs.joint_distillation import (
    add_plans,
    check_joint,
    check_outputs,
    check_teachers,
    join_results,
    locate_parts,
    make_combiner,
    name_parts,
    split_teachers,
)
from stillvec.vocabulary.languages import guess_language
from stillvec.vocabulary.segmenters import AUTO, choose_segmenter

if TYPE_CHECKING:
    from stillvec.distributed.process_group import ProcessGroup
    from stillvec.pipeline.distillation_run import Run
    from stillvec.pipeline.plan import Plan
    from stillvec.pipeline.training_run import TrainingRun

_IMPORTS = 352 << 20  # bytes of torch, transformers and its code of models in memory
Engine = Literal["local", "ray"]
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", Distillation, Training)


class Arguments(dict[str, Any]):
    """The arguments of a call by name, with defaults; `given` are those that the caller named."""

    given: frozenset[str] = frozenset()

    @classmethod
    def bind(cls, signature: inspect.Signature, *args: Any, **kwargs: Any) -> Arguments:
        bound = signature.bind(*args, **kwargs)
        given = frozenset(bound.arguments)
        bound.apply_defaults()
        arguments = cls(bound.arguments)
        arguments.given = given
        return arguments

    def but(self, **changes: Any) -> Arguments:
        """These arguments with other values."""
        arguments = Arguments({**self, **changes})
        arguments.given = self.given
        return arguments


def with_parameters_of(template: Callable[P, object]) -> Callable[[Callable[[Arguments], R]], Callable[P, R]]:
    """Give a function of `Arguments` the typed parameters, with defaults, of another function."""
    signature = inspect.signature(template)

    def decorate(function: Callable[[Arguments], R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(Arguments.bind(signature, *args, **kwargs))

        returns = inspect.signature(function).return_annotation
        call.__signature__ = signature.replace(return_annotation=returns)  # type: ignore[attr-defined]
        return call

    return decorate


def _parameters(
    *corpus: CorpusSource,
    teacher: str = "minilm",
    method: str = "auto",
    purpose: str = "words",
    layer: str | None = None,
    dim: int | None = None,
    dictionary: str | None = None,
    senses: int | None = None,
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
    lowercase: bool = True,
    segmenter: str = AUTO,
    language: str = AUTO,
    min_sentences: int | None = None,
    min_characters: int | None = None,
    contexts: int | Literal["all"] | None = CONTEXTS,
    seed: int = 0,
    oov: str | None = None,
    device: str = "auto",
    precision: str = "auto",
    prompt: str | None = None,
    unsafe_weights: bool = False,
    remote_code: bool = False,
    out: str | os.PathLike[str] | None = None,
    add_to: str | os.PathLike[str] | None = None,
    context_cache: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    threads: int | None = None,
    statistics: bool = True,
    engine: Engine = "local",
    address: str | None = None,
    workers: int | None = None,
    progress: bool | Callable[[Progress], object] = False,
) -> None:
    """The parameters of `distill`, `distill_all` and `plan`."""


@with_parameters_of(_parameters)
def distill(arguments: Arguments) -> WordVectors:
    """Distil a teacher into word vectors, on a corpus.

    Parameters
    ----------
    corpus: files, folders and globs, one by one or in a list; a list of texts; or one `Corpus` (default: words without
        context). A list is taken for texts if each string in it has a space or line break and none of them names a
        file; `Corpus.from_texts` is explicit.
    teacher: a Hugging Face model, a folder or a packaged teacher; several, separated by commas, each read the same
        sentences and are joined into one space, in which the first counts most (default: minilm).
    method: a learner, with settings as in "aggregate:contexts=max" (default: auto). For several use `distill_all`. The
        preset of a paper, as in "x2static:settings=gupta-jaggi-2021", also sets `contexts` and which words and
        paragraphs are used, unless they are given.
    purpose: "words", "corpus" (show more of this text), "sentences" or "queries" (to documents whose vectors the
        teacher makes), what `auto` optimises for
        (default: words).
    layer: the teacher's layer: a number, "last" or a range; 0 is its input (default: the method's own).
    dim: dimensions of the result (default: the method's own).
    dictionary: "wordnet" or a file of glosses, used beside the corpus (default: none).
    senses: give an ambiguous word up to this many vectors, one per sense, beside its own, with example sentences:
        `vectors.senses` (default: none).
    min_count: minimum number of occurrences of a word (default: 5).
    max_words: the size of the vocabulary, most frequent words first (default: no limit).
    include_words: words and multi-word terms in the vocabulary whatever their count (default: none).
    stop_words: words that are not in the vocabulary: a language ("english", "german" and others), a file with a word
        per line, or the words (default: none).
    exclude: a regular expression; words that match it as a whole are not in the vocabulary (default: none).
    pattern: a regular expression; only words that match it as a whole are in the vocabulary (default: none).
    numbers: "drop" leaves words without a letter out of the vocabulary (default: keep).
    phrases: find phrases of two or three words ("new york", "carbon dioxide") in the corpus; each is a word of the
        vocabulary (default: False).
    phrase_score: how strongly the words of a phrase must be associated, from 0 to 1: their normalized pointwise mutual
        information (default: 0.5).
    hyphens: "split" separates words at hyphens; with "keep" a hyphenated word that occurs `min_count` times is a word
        of the vocabulary, and rarer ones are separated (default: split).
    lowercase: fold the vocabulary to lower case (default: True).
    segmenter: what a word is: "spaces", or what divides scripts without spaces into words, "jieba" (Chinese), "fugashi"
        (Japanese), "pythainlp" (Thai) or "icu" (these, Khmer, Lao and Burmese), several separated by commas; "auto"
        looks at the text. The vectors remember it, and divide texts in the same way (default: auto).
    language: the code of the language, "de" for example, in whose templates words are read alone; "none": as bare words
        (default: auto, which looks at the text).
    min_sentences, min_characters: what a paragraph needs, or it is dropped (default: nothing is dropped).
    contexts: contexts per word that the teacher reads; "all" or None reads the whole corpus (default: 20).
    seed: random seed (default: 0).
    oov: "subword" fits character n-grams for out-of-vocabulary words (default: none).
    device: "auto", "cpu" or "cuda" (default: auto).
    precision: "auto", "fp32", "bf16", "fp16" or "int8" (default: auto).
    prompt: the name of one of the prompts in the teacher's sentence-transformers folder, which is put before every text
        that it reads, or "off" (default: the folder's default prompt, if it names one).
    unsafe_weights: load pickled weights too (default: False).
    remote_code: run code that comes with the teacher (default: False).
    out: the folder to write (default: nothing is written).
    add_to: a folder of an earlier result to which this corpus is added; settings that are not given are taken from it
        (default: none).
    context_cache: where methods that train cache the teacher's contexts (default: $STILLVEC_CACHE or the user's cache).
    resume: continue from the last checkpoint of an interrupted run (default: False).
    force: replace what exists; in a folder that stillvec did not write, only files of the same names (default: False).
    threads: CPU threads; with a GPU, processes that read and tokenize the text (default: one per core).
    statistics: write to `out` what `merge` and `add_to` need (default: True).
    engine: "local", or "ray" to read with the workers of a Ray cluster (default: local).
    address: address of the Ray cluster (default: $RAY_ADDRESS, else one is started).
    workers: number of Ray workers (default: one per GPU, else one per CPU).
    progress: True shows a bar in a terminal or a notebook, and lines on standard error elsewhere; a function gets every
        `Progress` event (`title`, `done`, `total`, `unit`, `fraction` of the whole run, `remaining` seconds); False
        shows nothing (default: False).
    """
    check_arguments(_parameters, {"method": arguments["method"]})
    if len(parse_methods(arguments["method"])) > 1 or str(arguments["layer"]) == "all":
        raise UsageError(
            "distill() returns the vectors of one method; for several methods or layers call distill_all().",
            code="several-methods",
        )
    results = _distill(arguments)
    if not results:
        raise UsageError("Only the first process of torchrun has a result; call distill_all() there.")
    return next(iter(results.values()))


@with_parameters_of(_parameters)
def distill_all(arguments: Arguments) -> dict[str, WordVectors]:
    """Distil several methods in one pass over the corpus, and return their vectors by name.

    Parameters are those of `distill`, except:
    method: one or several, separated by commas ("auto,aggregate:layer=3").
        What presets set for the whole run is set if the presets of all methods agree on it.
    layer: also "all", one result per layer of `aggregate`.
    out: with several results, each is a folder inside it.
    """
    return _distill(arguments)


def _distill(arguments: Arguments) -> dict[str, WordVectors]:
    """The vectors of each method, from one teacher or joined from several."""
    check_arguments(_parameters, {"teacher": arguments["teacher"]})
    teachers = split_teachers(arguments["teacher"])
    if len(teachers) == 1:
        return {name: result.vectors for name, result in _Call.build(arguments).run().items()}
    check_joint(arguments)
    out, dim, force = arguments["out"], arguments["dim"], arguments["force"]
    names = name_parts(teachers)
    parts: dict[str, Path] = {}
    if out is not None:
        methods = [label for label, _ in parse_methods(arguments["method"])]
        check_outputs(out, methods, make_combiner(len(teachers), dim), force=force)
        parts = locate_parts(out, names)
    check_teachers(teachers[1:], arguments)  # the run of the first loads it
    results = {}
    for teacher in teachers:
        results[teacher] = _distill(arguments.but(teacher=teacher, out=parts.get(teacher), dim=None))
    return join_results(results, parts, names, dim, out, force=force)


@with_parameters_of(_parameters)
def plan(arguments: Arguments) -> Plan:
    """Estimate the time, memory and disk that `distill_all` will take, and do nothing.

    Parameters are those of `distill_all`; with `resume`, the estimate is of what remains of the stopped run. The corpus
    is counted, and a part of it is read to measure the speed.
    """
    check_arguments(_parameters, {"resume": arguments["resume"], "teacher": arguments["teacher"]})
    teachers = split_teachers(arguments["teacher"])
    if len(teachers) > 1:
        check_joint(arguments)
    parts = locate_parts(arguments["out"], name_parts(teachers)) if len(teachers) > 1 and arguments["out"] else {}
    plans = []
    for teacher in teachers:
        out = parts.get(teacher, arguments["out"]) if arguments["resume"] else None  # where the checkpoint is
        plans.append(_Call.build(arguments.but(teacher=teacher, out=out)).plan())
    return add_plans(plans)


@dataclass(frozen=True)
class _Call:
    """The arguments of a call, checked."""

    corpus: Corpus | None
    settings: Distillation
    given: frozenset[str]  # settings that a preset leaves as they are
    out: str | os.PathLike[str] | None = None
    add_to: str | os.PathLike[str] | None = None
    context_cache: str | os.PathLike[str] | None = None
    resume: bool = False
    force: bool = False
    threads: int | None = None
    statistics: bool = True
    engine: Engine = "local"
    address: str | None = None
    workers: int | None = None
    progress: bool | Listener = False

    @classmethod
    def build(cls, arguments: Arguments) -> _Call:
        corpus, settings, options = split_arguments(Distillation, arguments)
        if options["add_to"] is not None:
            settings = inherit_settings(settings, options["add_to"], arguments.given)
            return cls(corpus, settings, frozenset(field.name for field in fields(Distillation)), **options)
        return cls(corpus, settings, arguments.given, **options)

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise UsageError.expected("at least 1", self.threads, where="threads")
        if self.engine not in ("local", "ray"):
            raise UsageError.unknown("engine", self.engine, ("local", "ray"))
        if self.out is not None:
            check_place(self.out)

    def run(self) -> dict[str, Result]:
        """The results by name; with `out`, each is written as soon as it is ready."""
        with (
            self._count() as pending,
            self._threads(),
            self._group() as group,
            show_progress(self.progress) as listener,
        ):
            run = self._run(group, pending)
            with lock_outputs(self.check_output(run), LAYOUT):
                finished = self._find_finished(run)
                return finished or execute(run, self.out, listener, statistics=self.statistics, force=self.force)

    def check_output(self, run: Run) -> list[str | os.PathLike[str]]:
        """Refuse before the work what would be refused after it; returns the folders that this process writes."""
        if self.out is None or not run.reader.finishes:
            return []
        requests = run.requests(statistics=self.statistics, expand=self._has_layers)
        targets = check_folders(self.out, requests, force=self.force, may_be_finished=self._may_be_finished)
        for target in targets:
            check_not_input(target, [*self._input_paths()], LAYOUT)
        return [self.out, *targets]

    @property
    def _has_layers(self) -> bool:
        """Whether there are results of layers; with layer="all", only the teacher knows how many there can be."""
        found = Path(self.out).glob("*-layer-*") if self.out is not None else ()
        return any(not path.name.startswith(".") for path in found)  # a killed run leaves locks

    def _input_paths(self) -> Iterator[str | os.PathLike[str]]:
        yield from () if self.corpus is None else self.corpus.sources
        yield from () if self.add_to is None else (self.add_to,)

    @property
    def _may_be_finished(self) -> bool:
        """Whether an existing result can be recognized: not by one of several processes, for which the others wait."""
        return not self.force and self.engine == "local" and "WORLD_SIZE" not in os.environ

    def _find_finished(self, run: Run) -> dict[str, Result]:
        """The results if all of them exist and were made by the same requests, else none."""
        if self.out is None or not self._may_be_finished:
            return {}
        requests = run.requests(statistics=self.statistics, expand=self._has_layers)
        finished = find_finished(self.out, requests)
        if len(finished) < len(requests):
            return {}
        if run.checkpoint is not None:  # killed before it was removed
            run.checkpoint.remove()
        return {name: Result(load_finished(folder)) for name, folder in finished.items()}

    def plan(self) -> Plan:
        if self.engine == "ray" or int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise UsageError.conflict("plan and --dry-run work with a single process only")
        with self._threads(), show_progress(self.progress) as listener:
            from stillvec.pipeline.plan import plan_run

            timeline = Timeline({"loading": 20.0, "counting": 30.0, "sampling": 50.0})
            return drain(plan_run(self._run(None)), None if listener is None else timeline.listen(listener))

    def _count(self) -> AbstractContextManager[PendingCount | None]:
        """Begin to count the words while torch is imported and the teacher is loaded, where this process counts."""
        if self.corpus is None or self.engine != "local" or "WORLD_SIZE" in os.environ:
            return nullcontext()
        settings, _, _ = resolve_presets(self.settings, self.given)
        if settings.phrases or settings.hyphens == "keep" or self.add_to is not None:
            return nullcontext()  # what counts as a word is found first
        return start_count(select_text(self.corpus, settings), settings, self.threads)

    def _threads(self) -> AbstractContextManager[None]:
        packages = {"torch": "distill", "transformers": "distill"}
        if self.settings.teacher in PACKAGED and not Path(self.settings.teacher).exists():
            packages[PACKAGED[self.settings.teacher][0]] = "packaged"
        require_all(packages, "Distilling")
        if "torch" not in sys.modules:
            require_memory(_IMPORTS, "Loading torch and transformers")
            if self.settings.device != "cpu" and self.engine == "local" and "WORLD_SIZE" not in os.environ:
                start_driver()
        from stillvec.teachers.device import torch_threads

        return torch_threads(self.threads)

    def _group(self) -> AbstractContextManager[ProcessGroup | None]:
        """The processes that torchrun started, this one among them; None without torchrun."""
        if "WORLD_SIZE" not in os.environ:
            return nullcontext()
        from stillvec.distributed.process_group import join_group

        return join_group(self.settings.device)

    def _run(self, group: ProcessGroup | None, pending: PendingCount | None = None) -> Run:
        """A run of this process, of one among several, or of a cluster."""
        from stillvec.pipeline.distillation_run import Run
        from stillvec.pipeline.readers import Reader

        others = "torchrun" if group is not None else "engine='ray'" if self.engine == "ray" else None
        if others is None:
            if self.address or self.workers:
                raise UsageError.conflict("address and workers require engine='ray'")
            return Run(
                self.settings,
                self.corpus,
                self.add_to,
                store=self.context_cache,
                resume=self.resume,
                out=self.out,
                reader=Reader(self.threads, pending),
                given=self.given,
            )
        if self.resume:
            raise UsageError.conflict(f"resume works with a single process only, and {others} starts several")
        if group is None:
            if self.threads:
                raise UsageError.conflict("threads works on this machine only; a Ray cluster assigns CPUs itself")
            from stillvec.distributed.ray_reader import RayReader

            reader: Reader = RayReader(self.address, self.workers)
        elif self.engine == "ray":
            raise UsageError.conflict("torchrun and engine='ray' each start processes of their own; use one of them")
        else:
            from stillvec.distributed.torchrun_reader import TorchrunReader

            reader = TorchrunReader(group, self.threads)
        return Run(self.settings, self.corpus, self.add_to, store=self.context_cache, reader=reader, given=self.given)


def check_distillation(corpus: Sequence[CorpusSource], arguments: Mapping[str, Any]) -> None:
    """Refuse before the work what `distill_all` with these arguments would refuse."""
    call = _Call.build(Arguments.bind(inspect.signature(_parameters), *corpus, **arguments))
    with call._threads():
        call.check_output(call._run(None))


def split_arguments(kind: type[S], arguments: Mapping[str, Any]) -> tuple[Corpus | None, S, dict[str, Any]]:
    """The corpus, the settings and the other arguments of a call."""
    names = {field.name for field in fields(kind)}
    values = {name: value for name, value in arguments.items() if name in names}
    if isinstance(contexts := values.get("contexts"), str) and contexts == "all":
        values["contexts"] = None
    if isinstance(stop_words := values["stop_words"], str):
        values["stop_words"] = read_stop_words(stop_words)
    corpus = open_corpus(arguments["corpus"])
    inherits = arguments.get("add_to") is not None  # what defines words from the result that is added to
    if corpus is not None:
        corpus.watch()  # its files may have changed since an earlier run
    sample = values["include_words"] if corpus is None else [] if inherits else corpus.sample()
    check_arguments(distill, {name: values[name] for name in ("segmenter", "language") if name in values})
    if values["segmenter"] == AUTO:
        values["segmenter"] = choose_segmenter(sample)
    if values.get("language") == AUTO:
        values["language"] = guess_language(sample)
    settings = settings_from(kind, values)
    options = {name: value for name, value in arguments.items() if name not in names and name != "corpus"}
    check_arguments(distill, options)
    return corpus, settings, options


def execute(
    run: Run | TrainingRun,
    out: str | os.PathLike[str] | None,
    listener: Listener | None,
    *,
    statistics: bool = True,
    force: bool = False,
) -> dict[str, Result]:
    """Run to the end, write every result as soon as it is ready, and return them by name."""
    stage, timeline, watch = str(Phase.STARTING), Timeline(run.weights), MemoryWatch()
    try:
        for event in run.steps() if out is None else save_steps(run, out, statistics=statistics, force=force):
            if isinstance(event, Progress):
                stage = event.title
                if listener is not None:
                    listener(timeline(event))
            if watch.is_short(run.memory_floor):
                run.save_checkpoint()
                raise MemoryError
        if listener is not None:
            listener(timeline.finish())
    except (MemoryError, RuntimeError, OSError) as error:
        if is_out_of_memory(error):
            raise out_of_memory(stage, _find_checkpoint(run)) from error
        raise
    except KeyboardInterrupt:
        checkpoint = _find_checkpoint(run)
        if checkpoint is None:
            raise
        raise KeyboardInterrupt(f"interrupted; --resume continues from {checkpoint}.") from None
    return run.results


def _find_checkpoint(run: Run | TrainingRun) -> Path | None:
    """The file that a stopped run can be continued from, if it has one."""
    path: Path | None = None if run.checkpoint is None else run.checkpoint.path
    return path if path is not None and path.exists() else None
