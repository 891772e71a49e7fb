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

import inspect
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stillvec.combination import COMBINERS
from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.evaluation import evaluate
from stillvec.evaluation.tasks import split_tasks
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

_CALLS: dict[str, Callable[..., dict[str, WordVectors]]] = {"distill": distill_all, "train": train_all}
_CHECKS = {"distill": check_distillation, "train": check_training}


class RecipeStep:
    """One table of a recipe: a frozen dataclass whose fields are the keys, `inputs` for the key `in`."""

    verb: ClassVar[str]

    @classmethod
    def read(cls, keys: dict[str, Any], where: str) -> RecipeStep:
        required = {part.name for part in fields(cls) if part.default is MISSING}  # type: ignore[arg-type]
        if "inputs" in required - {*keys}:
            raise UsageError(f"{where} requires the setting 'in'.", code="missing-setting")
        return settings_from(cls, keys, where)

    @property
    def target(self) -> str | None:
        """The folder or file to write."""
        return getattr(self, "out", None)

    @property
    def sources(self) -> list[str]:
        """The vectors to read."""
        inputs = getattr(self, "inputs", ())
        others = (getattr(self, "add_to", None), getattr(self, "like", None))
        return [*([inputs] if isinstance(inputs, str) else inputs), *filter(None, others)]

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse before the first step what the verb would refuse."""
        if self.target is not None:
            check_replaceable(self.target, "manifest.json")

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        """Call the verb; `written` are the paths of the vectors that earlier steps wrote."""
        raise NotImplementedError


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
    context_cache, resume, progress: as in `distill`.
    finished: called with the outcome of each step as soon as it is done (default: nothing).
    """
    steps = read_recipe(recipe)
    options = {"context_cache": context_cache, "resume": resume, "progress": progress}
    for step in steps:
        step.check(options)
    outcomes: list[Outcome] = []
    for step in steps:
        outcomes.append(step.run(options, [path for outcome in outcomes for path in outcome.vectors]))
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
        if verb not in _STEPS:
            raise UsageError.unknown("table", verb, _STEPS, path=path)
        where = f"[{verb}] of {os.fspath(path)}"
        for table in content[verb] if isinstance(content[verb], list) else [content[verb]]:
            if not isinstance(table, dict):
                raise UsageError.expected("a table", repr(table), where=where)
            keys = {key.replace("-", "_"): _expand(value) for key, value in table.items()}
            if "in" in keys:
                keys["inputs"] = keys.pop("in")
            steps.append(_STEPS[verb].read(keys, where))
    if not any(step.verb != "evaluate" or step.sources for step in steps):
        raise UsageError(f"The recipe {os.fspath(path)} needs a table such as [distill] or [train].", path=path)
    return _sort(steps)


def _sort(steps: list[RecipeStep]) -> list[RecipeStep]:
    """distill and train first, then each step as soon as what it reads is written; evaluate without `in` last."""
    targets: dict[Path, RecipeStep] = {}
    for step in steps:
        if step.target and (other := targets.setdefault(Path(step.target).absolute(), step)) is not step:
            raise UsageError.conflict(f"[{other.verb}] and [{step.verb}] both write {step.target}")
    pending = sorted(steps, key=lambda step: (step.verb == "evaluate" and not step.sources, [*_STEPS].index(step.verb)))
    done: list[RecipeStep] = []
    while pending:
        ready = next((step for step in pending if not any(_reads(step, other) for other in pending)), None)
        if ready is None:
            raise UsageError.conflict(f"[{pending[0].verb}] and [{pending[-1].verb}] each read what the other writes")
        pending.remove(ready)
        done.append(ready)
    return done


def _reads(step: RecipeStep, other: RecipeStep) -> bool:
    """Whether a step reads what the other writes, or a folder inside it."""
    if step is other or other.target is None:
        return False
    target = Path(other.target).absolute()
    return any(target in (path, *path.parents) for path in (Path(name).absolute() for name in step.sources))


def _expand(value: Any) -> Any:
    """Expand environment variables in texts and lists of texts."""
    if isinstance(value, list):
        return [_expand(item) for item in value]
    if not isinstance(value, str):
        return value
    expanded = os.path.expandvars(value)
    missing = re.search(r"\$\{?(\w+)", expanded)
    if missing:
        raise UsageError(f"The recipe names ${missing[1]}, which is not set in the environment.", code="not-set")
    return expanded


@dataclass(frozen=True, kw_only=True)
class _CorpusStep(RecipeStep):
    """The keys of [[distill]] and [[train]] beside the settings."""

    out: str
    corpus: tuple[str, ...] = ()
    field: str | None = None

    @classmethod
    def read(cls, keys: dict[str, Any], where: str) -> RecipeStep:
        if keys.get("contexts") == "all":
            keys["contexts"] = None
        for key in ("include_words", "keep"):
            if isinstance(keys.get(key), str):  # a file, or else the words themselves
                keys[key] = read_words(keys[key])
        return super().read(keys, where)

    def _arguments(self, options: Mapping[str, Any]) -> tuple[list[Corpus], dict[str, Any]]:
        values = {key: value for key, value in vars(self).items() if key not in ("corpus", "field")}
        return [Corpus(*self.corpus, field=self.field)] if self.corpus else [], {**values, **options}

    def check(self, options: Mapping[str, Any]) -> None:
        _CHECKS[self.verb](*self._arguments(options))

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        corpus, arguments = self._arguments(options)
        results = _CALLS[self.verb](*corpus, **arguments)
        out = Path(self.out)
        paths = [out / name for name in results] if len(results) > 1 else [out]
        return Outcome(self, dict(zip(map(str, paths), results.values(), strict=True)))


@dataclass(frozen=True, kw_only=True)
class _Distill(_CorpusStep, Distillation):
    verb = "distill"
    add_to: str | None = None
    statistics: bool = True
    threads: int | None = None


@dataclass(frozen=True, kw_only=True)
class _Train(_CorpusStep, Training):
    verb = "train"


@dataclass(frozen=True)
class _Refine(RecipeStep):
    verb = "refine"
    inputs: str
    out: str
    steps: tuple[str, ...] = ()
    oov: str | None = None
    like: str | None = None

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        if not [*map(read_step, self.steps), *unknown_steps(self.oov)] and self.like is None:
            raise UsageError.expected("at least one of steps, oov and like", "none", where="[refine]")

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        progress = options["progress"]
        vectors = refine(self.inputs, self.steps, oov=self.oov, like=self.like, out=self.out, progress=progress)
        return Outcome(self, {self.out: vectors})


@dataclass(frozen=True)
class _Combine(RecipeStep):
    verb = "combine"
    inputs: tuple[str, ...]
    method: str
    out: str

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        create(COMBINERS, self.method)

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        return Outcome(self, {self.out: combine(self.inputs, self.method, out=self.out)})


@dataclass(frozen=True)
class _Merge(RecipeStep):
    verb = "merge"
    inputs: tuple[str, ...]
    out: str

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        return Outcome(self, {self.out: merge(self.inputs, out=self.out)})


@dataclass(frozen=True)
class _Convert(RecipeStep):
    verb = "convert"
    inputs: str
    out: str
    format: str | None = None
    replace_space: str | None = None

    def check(self, options: Mapping[str, Any]) -> None:
        FORMATS[self.format or format_by_ending(Path(self.out))]

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        convert(self.inputs, self.out, format=self.format, replace_space=self.replace_space)
        return Outcome(self)


@dataclass(frozen=True)
class _Evaluate(RecipeStep):
    verb = "evaluate"
    inputs: tuple[str, ...] = ()  # none: everything that was written
    json: str | None = None
    report: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)  # of `evaluate`

    @classmethod
    def read(cls, keys: dict[str, Any], where: str) -> RecipeStep:
        own: dict[str, Any] = {key: keys.pop(key) for key in ("inputs", "json", "report") if key in keys}
        known = {*inspect.signature(evaluate).parameters} - {"vectors", "encoders", "cache", "progress"}
        for key in keys:
            if key not in known:
                raise UsageError.unknown("setting", key, known | {"in", "json", "report"}, where=where)
        if "tasks" in keys:
            tasks = keys["tasks"]
            keys["tasks"] = split_tasks(tasks if isinstance(tasks, str) else ",".join(map(str, tasks)))
        if "data" in keys and not Path(keys["data"]).is_dir():
            raise UsageError.not_found(keys["data"], f"the data folder of {where}")
        return replace(settings_from(cls, own, where), options=keys)

    def __post_init__(self) -> None:
        from stillvec.report import check_writable

        for file in self.report:
            check_writable(Path(file))

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        paths = [*(self.inputs or written)]
        sets = {name: load(path) for name, path in zip(unique_names(paths), paths, strict=True)}
        report = evaluate(sets, **self.options, cache=cache_folder() / "answers")
        if self.json:
            with atomic_file(self.json) as part:
                part.write_text(json.dumps(report.to_json(), ensure_ascii=False, indent=1) + "\n", "utf-8")
        if self.report:
            from stillvec.report import write_report

            folders = {name: Path(path) for name, path in zip(sets, paths, strict=True)}
            manifests = {
                name: read_manifest(path) for name, path in folders.items() if (path / "manifest.json").is_file()
            }
            for file in self.report:
                write_report(report, sets, file, manifests=manifests)
        return Outcome(self, report=report)


_STEPS: dict[str, type[RecipeStep]] = {
    kind.verb: kind for kind in (_Distill, _Train, _Refine, _Combine, _Merge, _Convert, _Evaluate)
}
