"""`run`: a recipe, a whole experiment in a TOML file with one table per step.

[distill]
corpus = ["texts/*.txt"]
teacher = "minilm"
method = "auto,aggregate"
out = "vectors"

[[refine]]
in = "vectors/auto"
steps = ["center", "quantize"]
out = "small"

[evaluate]
in = ["vectors/auto", "small"]
data = "data"

The tables are distill, train, refine, combine, merge, evaluate and convert; each may be an array of tables. A step that
reads what another writes comes after it; evaluate without `in` comes last and takes everything that was written.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stillvec.combination import COMBINERS
from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.evaluation import evaluate
from stillvec.evaluation.task_selection import split_tasks
from stillvec.files import atomic_file, cache_folder, check_replaceable
from stillvec.files.path_names import unique_names
from stillvec.formats import FORMATS, format_by_ending, load, read_manifest
from stillvec.lexicons import read_words
from stillvec.pipeline.settings import Distillation, Training
from stillvec.progress import Progress
from stillvec.refinement import read_step, unknown_steps
from stillvec.registry import create, settings_from
from stillvec.vectors import WordVectors
from stillvec.verbs.baseline_training import check_training, train_all
from stillvec.verbs.distillation import check_distillation, distill_all
from stillvec.verbs.transformation import combine, convert, merge, refine

if TYPE_CHECKING:
    from stillvec.evaluation import Report


@dataclass(frozen=True)
class _Train:
    """The keys of [[train]] beside those of `Training`."""

    out: str
    corpus: tuple[str, ...] = ()
    field: str | None = None


@dataclass(frozen=True)
class _Distill(_Train):
    """The keys of [[distill]] beside those of `Distillation`."""

    add_to: str | None = None
    statistics: bool = True
    threads: int | None = None


@dataclass(frozen=True)
class _Refine:
    inputs: str
    out: str
    steps: tuple[str, ...] = ()
    oov: str | None = None
    like: str | None = None


@dataclass(frozen=True)
class _Combine:
    inputs: tuple[str, ...]
    method: str
    out: str


@dataclass(frozen=True)
class _Merge:
    inputs: tuple[str, ...]
    out: str


@dataclass(frozen=True)
class _Convert:
    inputs: str
    out: str
    format: str | None = None
    replace_space: str | None = None


@dataclass(frozen=True)
class _Evaluate:
    inputs: tuple[str, ...] = ()  # none: everything that was written
    json: str | None = None
    report: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)  # of `evaluate`

    def __post_init__(self) -> None:
        from stillvec.report import check_writable

        for file in self.report:
            check_writable(Path(file))


@dataclass(frozen=True)
class RecipeStep:
    """One table of a recipe."""

    verb: str
    where: str  # "[distill] of RECIPE", for errors
    call: Any  # the keys of the table
    settings: Distillation | Training | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        named = getattr(self.call, "inputs", ())
        paths = (named,) if isinstance(named, str) else tuple(named)
        return paths + tuple(filter(None, (getattr(self.call, "add_to", None), getattr(self.call, "like", None))))

    @property
    def out(self) -> str | None:
        return getattr(self.call, "out", None)


@dataclass(frozen=True)
class Outcome:
    """What a step gave: vectors by their path, and a report of [[evaluate]]."""

    step: RecipeStep
    vectors: Mapping[str, WordVectors] = field(default_factory=dict)
    report: Report | None = None


def run(
    recipe: str | os.PathLike[str],
    *,
    context_cache: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool | Callable[[Progress], object] = False,
    finished: Callable[[Outcome], object] | None = None,
) -> list[Outcome]:
    """Run a recipe. All of it is checked before the first step.

    Parameters
    ----------
    recipe: a TOML file; paths in it are relative to the current folder, environment variables are expanded.
    context_cache: where methods that train cache the teacher's contexts (default: $STILLVEC_CACHE or the user's cache).
    resume: continue from the last checkpoint of an interrupted run (default: False).
    progress: True draws a bar in a terminal; a function gets every `Progress` event (default: False).
    finished: called with the outcome of each step as soon as it is done (default: nothing).
    """
    steps = read_recipe(recipe)
    options = {"context_cache": context_cache, "resume": resume}
    for step in steps:
        _CHECKS[step.verb](step, options)
    outcomes: list[Outcome] = []
    for step in steps:
        written = [path for outcome in outcomes for path in outcome.vectors]
        outcomes.append(_RUNNERS[step.verb](step, options | {"progress": progress}, written))
        if finished is not None:
            finished(outcomes[-1])
    return outcomes


def read_recipe(path: str | os.PathLike[str]) -> list[RecipeStep]:
    """The steps of a recipe, in the order in which they can be run."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError.not_found(path, "a recipe") from None
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, a number of thousands of digits, too deep
        raise UsageError(f"The recipe {os.fspath(path)} is not TOML: {error}.", path=path) from None
    steps = []
    for verb in content:
        if verb not in _READERS:
            raise UsageError.unknown("table", verb, _READERS, path=path)
        tables = content[verb] if isinstance(content[verb], list) else [content[verb]]
        where = f"[{verb}] of {os.fspath(path)}"
        for table in tables:
            if not isinstance(table, dict):
                raise UsageError.expected("a table", repr(table), where=where)
            keys = {key.replace("-", "_"): _expand(value) for key, value in table.items()}
            if "in" in keys:
                keys["inputs"] = keys.pop("in")
            steps.append(_READERS[verb](keys, where))
    if not any(step.verb != "evaluate" or step.inputs for step in steps):
        raise UsageError(f"The recipe {os.fspath(path)} needs a table such as [distill] or [train].", path=path)
    _check_outputs(steps)
    return _sort(steps)


def _read_run(kind: type[Distillation] | type[Training], places: type[_Train]) -> Callable[..., RecipeStep]:
    def read(keys: dict[str, Any], where: str) -> RecipeStep:
        names = {part.name for part in dataclasses.fields(places)} - {part.name for part in dataclasses.fields(kind)}
        call = settings_from(places, {key: value for key, value in keys.items() if key in names}, where)
        values = {key: value for key, value in keys.items() if key not in names}
        if values.get("contexts") == "all":
            values["contexts"] = None
        for key in ("include_words", "keep"):
            if isinstance(values.get(key), str):  # a file, or else the words themselves
                values[key] = read_words(values[key])
        return RecipeStep(kind.__name__, where, call, settings_from(kind, values, where))

    verb = "distill" if kind is Distillation else "train"
    return lambda keys, where: dataclasses.replace(read(keys, where), verb=verb)


def _read_call(verb: str, kind: type[Any]) -> Callable[..., RecipeStep]:
    return lambda keys, where: RecipeStep(verb, where, settings_from(kind, keys, where))


def _read_evaluate(keys: dict[str, Any], where: str) -> RecipeStep:
    own = {key: value for key, value in keys.items() if key in ("inputs", "json", "report")}
    options = {key: value for key, value in keys.items() if key not in own}
    known = {*inspect.signature(evaluate).parameters} - {"vectors", "encoders", "cache", "progress"}
    for key in options:
        if key not in known:
            raise UsageError.unknown("setting", key, known | {"in", "json", "report"}, where=where)
    if "tasks" in options:
        tasks = options["tasks"]
        options["tasks"] = split_tasks(tasks if isinstance(tasks, str) else ",".join(map(str, tasks)))
    if "data" in options and not Path(options["data"]).is_dir():
        raise UsageError.not_found(options["data"], f"the data folder of {where}")
    call = dataclasses.replace(settings_from(_Evaluate, own, where), options=options)
    return RecipeStep("evaluate", where, call)


_READERS: dict[str, Callable[[dict[str, Any], str], RecipeStep]] = {
    "distill": _read_run(Distillation, _Distill),
    "train": _read_run(Training, _Train),
    "refine": _read_call("refine", _Refine),
    "combine": _read_call("combine", _Combine),
    "merge": _read_call("merge", _Merge),
    "convert": _read_call("convert", _Convert),
    "evaluate": _read_evaluate,
}


def _check_outputs(steps: list[RecipeStep]) -> None:
    outputs: dict[Path, RecipeStep] = {}
    for step in steps:
        if step.out is not None and (other := outputs.setdefault(Path(step.out).absolute(), step)) is not step:
            raise UsageError.conflict(f"{other.where} and {step.where} both write {step.out}")


def _sort(steps: list[RecipeStep]) -> list[RecipeStep]:
    """distill and train first, then each step as soon as what it reads is written; evaluate without `in` last."""
    pending = sorted(
        steps, key=lambda step: (not step.inputs and step.verb == "evaluate", [*_READERS].index(step.verb))
    )
    done: list[RecipeStep] = []
    while pending:
        ready = next((step for step in pending if not any(_reads(step, other) for other in pending)), None)
        if ready is None:
            raise UsageError.conflict(f"{pending[0].where} and {pending[-1].where} each read what the other writes")
        pending.remove(ready)
        done.append(ready)
    return done


def _reads(step: RecipeStep, other: RecipeStep) -> bool:
    """Whether a step reads what the other writes, or a folder inside it."""
    if step is other or other.out is None:
        return False
    target = Path(other.out).absolute()
    return any(target in (path, *path.parents) for path in (Path(name).absolute() for name in step.inputs))


def _check_run(step: RecipeStep, options: Mapping[str, Any]) -> None:
    check = check_distillation if step.verb == "distill" else check_training
    check(_corpus(step), **_arguments(step, options))


def _run_distill(step: RecipeStep, options: Mapping[str, Any], written: list[str]) -> Outcome:
    return _outcome(step, distill_all(*_corpus(step), **_arguments(step, options)))


def _run_train(step: RecipeStep, options: Mapping[str, Any], written: list[str]) -> Outcome:
    return _outcome(step, train_all(*_corpus(step), **_arguments(step, options)))


def _corpus(step: RecipeStep) -> list[Corpus]:
    return [Corpus(*step.call.corpus, field=step.call.field)] if step.call.corpus else []


def _arguments(step: RecipeStep, options: Mapping[str, Any]) -> dict[str, Any]:
    call = {key: value for key, value in vars(step.call).items() if key not in ("corpus", "field")}
    return {**vars(step.settings), **call, **options}


def _outcome(step: RecipeStep, results: Mapping[str, WordVectors]) -> Outcome:
    out = Path(step.call.out)
    return Outcome(step, {str(out / name if len(results) > 1 else out): found for name, found in results.items()})


def _check_refine(step: RecipeStep, options: Mapping[str, Any]) -> None:
    check_replaceable(step.call.out, "manifest.json")
    steps = [*map(read_step, step.call.steps), *unknown_steps(step.call.oov)]
    if not steps and step.call.like is None:
        raise UsageError.expected("at least one of steps, oov and like", "none", where=step.where)


def _run_refine(step: RecipeStep, options: Mapping[str, Any], written: list[str]) -> Outcome:
    call = step.call
    vectors = refine(call.inputs, call.steps, oov=call.oov, like=call.like, out=call.out, progress=options["progress"])
    return Outcome(step, {call.out: vectors})


def _check_combine(step: RecipeStep, options: Mapping[str, Any]) -> None:
    check_replaceable(step.call.out, "manifest.json")
    create(COMBINERS, step.call.method)


def _run_combine(step: RecipeStep, options: Mapping[str, Any], written: list[str]) -> Outcome:
    return Outcome(step, {step.call.out: combine(step.call.inputs, step.call.method, out=step.call.out)})


def _check_merge(step: RecipeStep, options: Mapping[str, Any]) -> None:
    check_replaceable(step.call.out, "manifest.json")


def _run_merge(step: RecipeStep, options: Mapping[str, Any], written: list[str]) -> Outcome:
    return Outcome(step, {step.call.out: merge(step.call.inputs, out=step.call.out)})


def _check_convert(step: RecipeStep, options: Mapping[str, Any]) -> None:
    FORMATS[step.call.format or format_by_ending(Path(step.call.out))]


def _run_convert(step: RecipeStep, options: Mapping[str, Any], written: list[str]) -> Outcome:
    call = step.call
    convert(call.inputs, call.out, format=call.format, replace_space=call.replace_space)
    return Outcome(step)


def _run_evaluate(step: RecipeStep, options: Mapping[str, Any], written: list[str]) -> Outcome:
    import json

    call = step.call
    paths = [*(call.inputs or written)]
    sets = {name: load(path) for name, path in zip(unique_names(paths), paths, strict=True)}
    report = evaluate(sets, **call.options, cache=cache_folder() / "answers")
    if call.json:
        with atomic_file(call.json) as part:
            part.write_text(json.dumps(report.to_json(), ensure_ascii=False, indent=1) + "\n", "utf-8")
    if call.report:
        from stillvec.report import write_report

        folders = {name: Path(path) for name, path in zip(sets, paths, strict=True)}
        manifests = {name: read_manifest(path) for name, path in folders.items() if (path / "manifest.json").is_file()}
        for file in call.report:
            write_report(report, sets, file, manifests=manifests)
    return Outcome(step, report=report)


_CHECKS: dict[str, Callable[[RecipeStep, Mapping[str, Any]], None]] = {
    "distill": _check_run,
    "train": _check_run,
    "refine": _check_refine,
    "combine": _check_combine,
    "merge": _check_merge,
    "convert": _check_convert,
    "evaluate": lambda step, options: None,
}
_RUNNERS: dict[str, Callable[[RecipeStep, Mapping[str, Any], list[str]], Outcome]] = {
    "distill": _run_distill,
    "train": _run_train,
    "refine": _run_refine,
    "combine": _run_combine,
    "merge": _run_merge,
    "convert": _run_convert,
    "evaluate": _run_evaluate,
}


def _expand(value: Any) -> Any:
    """Environment variables in texts and lists of texts."""
    if isinstance(value, list):
        return [_expand(item) for item in value]
    if not isinstance(value, str):
        return value
    expanded = os.path.expandvars(value)
    missing = re.search(r"\$\{?(\w+)", expanded)
    if missing:
        raise UsageError(f"The recipe names ${missing[1]}, which is not set in the environment.", code="not-set")
    return expanded
