"""`run`: a recipe, a whole experiment in a TOML file with one table per step; docs/commands.md describes its keys.

A step that reads what another writes comes after it; evaluate without `in` comes last and takes everything that was
written. A table with `for = {size = [1, 2]}` is run once for each combination of values, which replace `{size}`.
"""

import itertools
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stillvec.errors import InputError, UsageError
from stillvec.files import unreadable
from stillvec.input_checks import check_arguments
from stillvec.progress import Listener, Progress, show_progress
from stillvec.verbs.recipe_steps import STEPS, Outcome, RecipeStep, match_paths

_PATHS = {"corpus", "teacher", "in", "out", "add_to", "add-to", "like", "data", "json", "report"}


def run(
    recipe: str | os.PathLike[str],
    *,
    context_cache: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    unsafe_weights: bool = False,
    remote_code: bool = False,
    progress: bool | Callable[[Progress], object] = False,
    finished: Callable[[Outcome], object] | None = None,
) -> list[Outcome]:
    """Run a recipe. All of it is checked before the first step.

    Parameters
    ----------
    recipe: a TOML file; paths in it are relative to the current folder, environment variables and `~/` are expanded.
    context_cache, resume, progress: as in `distill`.
    force: replace existing results that other settings or inputs gave (default: False); finished steps are kept.
    unsafe_weights, remote_code: allow the recipe to set these (default: False): a teacher can then execute code.
    finished: called with the outcome of each step as soon as it is done (default: nothing).
    """
    check_arguments(run, locals())
    allowed = {"unsafe_weights": unsafe_weights, "remote_code": remote_code}
    steps = check_recipe(recipe, context_cache=context_cache, resume=resume, force=force, **allowed)
    options = {"context_cache": context_cache, "resume": resume, "force": force}
    outcomes: list[Outcome] = []
    with show_progress(progress) as listener:
        for number, step in enumerate(steps, 1):
            listen = False if listener is None else _name_step(listener, f"{number} of {len(steps)}, {step.verb}")
            written = [path for outcome in outcomes for path in outcome.vectors]
            outcomes.append(_run_step(step, {**options, "progress": listen}, written))
            if finished is not None:
                finished(outcomes[-1])
    return outcomes


def _name_step(listener: Listener, name: str) -> Listener:
    """A listener for one step; fractions and estimates of its events are those of the step."""
    return lambda event: listener(replace(event, step=name))


def _run_step(step: RecipeStep, options: Mapping[str, Any], written: Sequence[str]) -> Outcome:
    """Run a step; with `force` it replaces an existing result unless that was made by the same step."""
    if options["force"]:
        try:
            return step.run({**options, "force": False}, written)
        except UsageError as error:
            if error.code not in ("exists", "conflict"):
                raise
    return step.run(options, written)


def check_recipe(
    recipe: str | os.PathLike[str],
    *,
    context_cache: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    unsafe_weights: bool = False,
    remote_code: bool = False,
) -> list[RecipeStep]:
    """The steps of a recipe in their order, checked as `run` checks them: settings, corpora, inputs and outputs."""
    steps = read_recipe(recipe)
    for step in steps:
        for key, allowed in (("unsafe_weights", unsafe_weights), ("remote_code", remote_code)):
            if getattr(step, key, False) and not allowed:
                message = f"[{step.verb}] sets {key}, so that the teacher can execute code"
                cure = f"if you trust it, give --{key.replace('_', '-')}"
                raise UsageError.conflict(message, cure=cure, path=recipe)
        step.check({"context_cache": context_cache, "resume": resume, "force": force, "progress": False})
        for source in step.sources:
            if not (any(_reads_from(source, other) for other in steps if other is not step) or match_paths(source)):
                raise UsageError.not_found(source, f"vectors for [{step.verb}]")
    return steps


def read_recipe(path: str | os.PathLike[str]) -> list[RecipeStep]:
    """The steps of a recipe, in the order in which they can be run."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError.not_found(path, "a recipe") from None
    except OSError as error:
        raise unreadable(error, os.fspath(path), InputError) from None
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, a number of thousands of digits, too deep
        raise UsageError(f"The recipe {os.fspath(path)} is not TOML: {error}.", path=path) from None
    steps = []
    for verb in content:
        if verb not in STEPS:
            raise UsageError.unknown("table", verb, STEPS, path=path)
        where = f"[{verb}] of {os.fspath(path)}"
        for table in content[verb] if isinstance(content[verb], list) else [content[verb]]:
            if not isinstance(table, dict):
                raise UsageError.expected("a table", repr(table), where=where)
            _check_paths(table, where)
            for combination in _expand_grid(table, where):
                keys = {key.replace("-", "_"): _expand(value) for key, value in combination.items()}
                if "in" in keys:
                    keys["inputs"] = keys.pop("in")
                steps.append(STEPS[verb].read(keys, where))
    if not any(step.verb != "evaluate" or step.sources for step in steps):
        raise UsageError(f"The recipe {os.fspath(path)} needs a table such as [distill] or [train].", path=path)
    return _sort(steps)


def _check_paths(table: Mapping[str, Any], where: str) -> None:
    for key in _PATHS & table.keys():
        for path in table[key] if isinstance(table[key], list) else [table[key]]:
            if not isinstance(path, str) or "\0" in path:
                raise UsageError.expected("a path", repr(path), where=f"setting {key!r} of {where}")


def _sort(steps: list[RecipeStep]) -> list[RecipeStep]:
    """distill and train first, then each step as soon as what it reads is written; evaluate without `in` last."""
    writers: dict[Path, RecipeStep] = {}
    for step in steps:
        for path in step.outputs:
            if (other := writers.setdefault(Path(path).absolute(), step)) is not step:
                raise UsageError.conflict(f"[{other.verb}] and [{step.verb}] both write {path}")
    pending = sorted(steps, key=lambda step: (step.verb == "evaluate" and not step.sources, [*STEPS].index(step.verb)))
    done: list[RecipeStep] = []
    while pending:
        ready = next((step for step in pending if not _waits(step, pending)), None)
        if ready is None:
            raise UsageError.conflict(f"[{pending[0].verb}] and [{pending[-1].verb}] each read what the other writes")
        pending.remove(ready)
        done.append(ready)
    return done


def _waits(step: RecipeStep, pending: Sequence[RecipeStep]) -> bool:
    """Whether a step reads what another of these writes."""
    return any(_reads_from(source, other) for other in pending if other is not step for source in step.sources)


def _reads_from(source: str, other: RecipeStep) -> bool:
    """Whether a path or pattern names what the step writes, or a folder inside it."""
    if other.target is None:
        return False
    path, target = Path(source).absolute(), Path(other.target).absolute()
    return any(target == folder or target.match(str(folder)) for folder in (path, *path.parents))


def _expand_grid(table: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """One table for each combination of the values of `for`."""
    grid = table.get("for", {})
    rest = {key: value for key, value in table.items() if key != "for"}
    if not isinstance(grid, dict) or not all(isinstance(values, list) and values for values in grid.values()):
        raise UsageError.expected("a table of arrays, as in {size = [1, 2]}", repr(grid), where=f"'for' of {where}")
    for name in grid:
        if "{" + name + "}" not in str(rest):
            raise UsageError(f"'for' of {where} has values of {name!r}, but no key has {{{name}}}.", code="not-used")
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        yield {key: _substitute(value, chosen) for key, value in rest.items()}


def _substitute(value: Any, chosen: Mapping[str, Any]) -> Any:
    """Replace `{name}` in texts and lists of texts; a text that is only `{name}` becomes the value itself."""
    if isinstance(value, list):
        return [_substitute(item, chosen) for item in value]
    if not isinstance(value, str):
        return value
    for name, replacement in chosen.items():
        if value == "{" + name + "}":
            return replacement
        value = value.replace("{" + name + "}", str(replacement))
    return value


def _expand(value: Any) -> Any:
    """Expand environment variables and `~/` in texts and lists of texts."""
    if isinstance(value, list):
        return [_expand(item) for item in value]
    if not isinstance(value, str):
        return value
    expanded = os.path.expandvars(os.path.expanduser(value) if value.startswith("~/") else value)
    missing = re.search(r"\$\{?(\w+)", expanded)
    if missing:
        raise UsageError(f"The recipe names ${missing[1]}, which is not set in the environment.", code="not-set")
    return expanded
