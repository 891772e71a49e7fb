"""The tables of a recipe: one class for each verb."""

from __future__ import annotations

import glob
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.evaluation import evaluate
from stillvec.evaluation.tasks import split_tasks
from stillvec.files import FolderLayout, atomic_file, cache_folder, check_replaceable
from stillvec.files.path_names import unique_names
from stillvec.formats import FORMATS, format_by_ending, load, local_path, read_manifest
from stillvec.formats.request import Request
from stillvec.formats.stillvec_folder import LAYOUT
from stillvec.heads import HEADS
from stillvec.heads.head_folder import LAYOUT as HEAD_LAYOUT
from stillvec.heads.labelled_data import locate_parts
from stillvec.hub import is_address
from stillvec.lexicons import read_words
from stillvec.notation import parse_spec
from stillvec.pipeline.result_folders import locate_results
from stillvec.pipeline.settings import Distillation, Training, read_stop_words
from stillvec.refinement import read_step, unknown_steps
from stillvec.registry import create, read_new_names, settings_from
from stillvec.vectors import WordVectors
from stillvec.verbs.baseline_training import check_training, train_all
from stillvec.verbs.distillation import check_distillation, distill_all
from stillvec.verbs.fitting import fit, read_options
from stillvec.verbs.transformation import (
    combine,
    convert,
    merge,
    read_steps,
    refine,
    request_combine,
    request_merge,
    request_refine,
)

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
    def outputs(self) -> list[str]:
        """The target and all other files to write."""
        return [path for path in (self.target, getattr(self, "json", None), *getattr(self, "report", ())) if path]

    @property
    def sources(self) -> list[str]:
        """The vectors to read."""
        inputs = getattr(self, "inputs", ())
        others = (getattr(self, "add_to", None), getattr(self, "like", None))
        return [*([inputs] if isinstance(inputs, str) else inputs), *filter(None, others)]

    def __str__(self) -> str:
        inputs = ", ".join(getattr(self, "corpus", ()) or self.sources)
        return f"{self.verb} {inputs}".rstrip() + (f" -> {self.target}" if self.target else "")

    def request(self) -> Request | None:
        """The settings that decide the result, to compare them with those of an existing one."""
        return None

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse before the first step what the verb would refuse."""
        request = self.request()
        if self.target is None or (request is not None and request.has_settings_of(self.target)):
            return  # the verb itself finds out whether it is finished
        check_replaceable(self.target, LAYOUT, force=options["force"])

    def check_place(self, layout: FolderLayout | None, options: Mapping[str, Any]) -> None:
        """Refuse a target that cannot be written; whether an existing one is finished, the verb itself finds out."""
        try:
            check_replaceable(self.target or "", layout, force=options["force"])
        except UsageError as error:
            if error.code != "exists":
                raise

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        """Call the verb; `written` are the paths of the vectors that earlier steps wrote."""
        raise NotImplementedError


@dataclass(frozen=True)
class Outcome:
    """What a step gave: vectors by their path, and a report of [[evaluate]]."""

    step: RecipeStep
    vectors: Mapping[str, WordVectors] = field(default_factory=dict)
    report: Report | None = None


def match_paths(source: str) -> list[str]:
    """The paths that a path or pattern names."""
    return [source] if is_address(source) or Path(source).exists() else sorted(glob.glob(source))


def find_inputs(sources: Sequence[str], written: Sequence[str]) -> list[str]:
    """The paths of vectors that paths and patterns name; of a pattern, what earlier steps wrote comes first."""
    order = {path: number for number, path in enumerate(written)}
    paths: list[str] = []
    for source in sources:
        matches = sorted(match_paths(source), key=lambda path: order.get(path, len(order)))
        paths += matches or [source]
    return [*dict.fromkeys(paths)]


@dataclass(frozen=True, kw_only=True)
class _CorpusStep(RecipeStep):
    """The keys of [[distill]] and [[train]] beside the settings."""

    given: ClassVar[frozenset[str]]  # the keys of the table; others may be taken from the result in `add_to`

    out: str
    corpus: tuple[str, ...] = ()
    field: str | None = None
    plain: bool = False

    @classmethod
    def read(cls, keys: dict[str, Any], where: str) -> RecipeStep:
        if keys.get("contexts") == "all":
            keys["contexts"] = None
        if isinstance(keys.get("method"), list):
            keys["method"] = ",".join(map(str, keys["method"]))
        for key in ("include_words", "keep"):
            if isinstance(keys.get(key), str):  # a file, or else the words themselves
                keys[key] = read_words(keys[key])
        if isinstance(keys.get("stop_words"), str):
            keys["stop_words"] = read_stop_words(keys["stop_words"])
        step = super().read(keys, where)
        renamed = read_new_names(cls)
        object.__setattr__(step, "given", frozenset(renamed.get(key, key) for key in keys))
        return step

    def _arguments(self, options: Mapping[str, Any]) -> tuple[list[Corpus], dict[str, Any]]:
        values = {key: value for key, value in vars(self).items() if key in self.given - {"corpus", "field", "plain"}}
        return [Corpus(*self.corpus, field=self.field, plain=self.plain)] if self.corpus else [], {**values, **options}

    def check(self, options: Mapping[str, Any]) -> None:
        _CHECKS[self.verb](*self._arguments(options))

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        corpus, arguments = self._arguments(options)
        results = _CALLS[self.verb](*corpus, **arguments)
        paths = locate_results(self.out, results)
        return Outcome(self, {str(paths[name]): vectors for name, vectors in results.items()})


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

    def request(self) -> Request | None:
        if not [*map(read_step, self.steps), *unknown_steps(self.oov)] and self.like is None:
            raise UsageError.expected("at least one of steps, oov and like", "none", where="[refine]")
        if self.like is not None and not Path(self.like).exists():  # an earlier step writes it
            return None
        return request_refine(read_steps(self.steps, self.oov, self.like))

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        given = {name: options[name] for name in ("force", "progress")}
        vectors = refine(self.inputs, self.steps, oov=self.oov, like=self.like, out=self.out, **given)
        return Outcome(self, {self.out: vectors})


@dataclass(frozen=True)
class _Combine(RecipeStep):
    verb = "combine"
    inputs: tuple[str, ...]
    method: str
    out: str

    def request(self) -> Request:
        return request_combine(self.method)

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        inputs = find_inputs(self.inputs, written)
        return Outcome(self, {self.out: combine(inputs, self.method, out=self.out, force=options["force"])})


@dataclass(frozen=True)
class _Merge(RecipeStep):
    verb = "merge"
    inputs: tuple[str, ...]
    out: str

    def request(self) -> Request:
        return request_merge(())

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        vectors = merge(find_inputs(self.inputs, written), out=self.out, force=options["force"])
        return Outcome(self, {self.out: vectors})


@dataclass(frozen=True)
class _Convert(RecipeStep):
    verb = "convert"
    inputs: str
    out: str
    format: str | None = None
    replace_space: str | None = None

    def check(self, options: Mapping[str, Any]) -> None:
        self.check_place(FORMATS[self.format or format_by_ending(Path(self.out))].layout, options)

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        given = {"format": self.format, "replace_space": self.replace_space, "force": options["force"]}
        convert(self.inputs, self.out, **given)
        return Outcome(self)


@dataclass(frozen=True)
class _Fit(RecipeStep):
    verb = "fit"
    inputs: str
    on: str
    out: str
    head: str = "linear"
    options: tuple[str, ...] = ()
    multilabel: bool = False
    text_field: str = "text"
    label_field: str | None = None
    packing: str = "int8"
    seed: int = 0
    seeds: int = 1

    def check(self, options: Mapping[str, Any]) -> None:
        create(HEADS, self.head)
        locate_parts(Path(self.on))
        read_options(self.options, parse_spec(self.head).name)
        self.check_place(HEAD_LAYOUT, options)

    def run(self, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
        names = ("head", "options", "out", "multilabel", "text_field", "label_field", "packing", "seed", "seeds")
        given = {name: getattr(self, name) for name in names}
        fit(self.inputs, self.on, **given, force=options["force"], progress=options["progress"])
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
        paths = find_inputs(self.inputs, written) if self.inputs else [*written]
        sets = {name: load(path) for name, path in zip(unique_names(paths), paths, strict=True)}
        report = evaluate(sets, **self.options, cache=cache_folder() / "answers", progress=options["progress"])
        if self.json:
            with atomic_file(self.json) as part:
                part.write_text(json.dumps(report.to_json(), ensure_ascii=False, indent=1) + "\n", "utf-8")
        if self.report:
            from stillvec.report import write_report

            folders = {name: local_path(path) for name, path in zip(sets, paths, strict=True)}
            manifests = {
                name: read_manifest(path) for name, path in folders.items() if (path / "manifest.json").is_file()
            }
            for file in self.report:
                write_report(report, sets, file, manifests=manifests)
        return Outcome(self, report=report)


STEPS: dict[str, type[RecipeStep]] = {
    kind.verb: kind for kind in (_Distill, _Train, _Refine, _Combine, _Merge, _Convert, _Fit, _Evaluate)
}
