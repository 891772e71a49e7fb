"""`adapt`: a teacher in, a changed teacher out, as a Hugging Face folder with a manifest."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from stillvec.adaptation import ADAPTATIONS, AdaptationResources, AdaptationStep, MakesModel, describe_adaptation
from stillvec.adaptation.model_folder import (
    digest_model,
    list_files,
    list_weights,
    make_layout,
    read_adaptation,
    write_adaptation,
)
from stillvec.errors import CorpusError, TeacherError, UsageError
from stillvec.files import (
    atomic_folder,
    check_not_input,
    check_replaceable,
    create_part_folder,
    lock_outputs,
    place_beside,
    scratch_folder,
)
from stillvec.formats.request import Request, warn_finished
from stillvec.input_checks import check_arguments, describe
from stillvec.pipeline.result_folders import describe_program
from stillvec.progress import Phase, Progress, drain, relay, show_progress
from stillvec.registry import create

AdaptationSpec = str | AdaptationStep
NEW = "new"  # no teacher


def adapt(
    teacher: str | os.PathLike[str],
    *steps: AdaptationSpec | Sequence[AdaptationSpec],
    out: str | os.PathLike[str],
    device: str = "auto",
    resume: bool = False,
    force: bool = False,
    progress: bool | Callable[[Progress], object] = False,
) -> Path:
    """Change a teacher by one step after another; returns the folder, which `distill(teacher=...)` takes.

    Parameters
    ----------
    teacher: a folder, a packaged teacher, a name on the Hugging Face Hub, or "new", which `pretrain` as the first step
        makes.
    steps: names with settings ("prune:sparsity=0.4"), objects of their classes, or lists of these.
    out: the folder to write: configuration, tokenizer, weights, and `adaptation.json`, which says how it was made.
    device: "auto", "cpu" or "cuda", for steps that train (default: auto).
    resume: continue from the last checkpoint of steps that train (default: False).
    force: replace what exists; in a folder that stillvec did not write, only files of the same names (default: False).
    progress: True shows a bar in a terminal or a notebook, and lines elsewhere; a function gets every `Progress` event
        (default: False).
    """
    check_arguments(adapt, locals())
    given = _read_steps(steps)
    name = os.fspath(teacher)
    if name != NEW:
        return _adapt(name, _locate(name), given, Path(out), device, resume=resume, force=force, progress=progress)
    if not isinstance(given[0], MakesModel):
        got = ADAPTATIONS.name_of(given[0])
        raise UsageError.expected("pretrain as the first step of a new teacher", got, where="adapt new")
    with scratch_folder() as empty:
        return _adapt(name, empty, given, Path(out), device, resume=resume, force=force, progress=progress)


def _adapt(
    name: str,
    source: Path,
    given: Sequence[AdaptationStep],
    target: Path,
    device: str,
    *,
    resume: bool,
    force: bool,
    progress: bool | Callable[[Progress], object],
) -> Path:
    layout = make_layout(target, source)

    def digest_inputs() -> dict[str, str]:
        return {"teacher": digest_model(source)}

    described = [*map(describe_adaptation, given)]
    request = Request("adapt", {"steps": described}, digest_inputs, layout)
    if force or not request.has_settings_of(target):
        check_replaceable(target, layout, force=force)
    check_not_input(target, [source], layout)
    with lock_outputs([target], layout), show_progress(progress) as listener:
        checkpoints = place_beside(target, "checkpoint")
        is_finished = request.check(target, force=force)
        if is_finished or not resume:  # a run that was killed after it had written leaves checkpoints behind
            shutil.rmtree(checkpoints, ignore_errors=True)
        if is_finished:
            warn_finished(target, layout.describe(target))
            return target
        resources = AdaptationResources(device, checkpoints, resume)
        work = create_part_folder(Path(os.path.realpath(target)).with_name(f"{target.name}.adapt"))
        try:
            last, facts = drain(_run(given, source, work, resources), listener)
            _check_unchanged(described, given)
            manifest = _describe(name, source, described, facts, request)
            with atomic_folder(target, make_layout(target, source, last)) as part:
                for file in list_files(last):
                    (part / file).parent.mkdir(parents=True, exist_ok=True)
                    os.replace(last / file, part / file)
                write_adaptation(part, manifest)
        except KeyboardInterrupt:
            if checkpoints.exists():
                raise KeyboardInterrupt(f"interrupted; --resume continues from {checkpoints}.") from None
            raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(checkpoints, ignore_errors=True)
    return target


def _run(
    steps: Sequence[AdaptationStep], source: Path, work: Path, resources: AdaptationResources
) -> Generator[Progress, None, tuple[Path, list[dict[str, Any]]]]:
    """Each step reads the folder that the one before wrote; returns the last folder, and the facts of each step."""
    facts: list[dict[str, Any]] = []
    for number, step in enumerate(steps, 1):
        label = f"{number} of {len(steps)}" if len(steps) > 1 else ""
        start = time.perf_counter()
        yield Progress(Phase.STARTING, 0, None, "", 0.0, subject=ADAPTATIONS.name_of(step), step=label)
        folder = work / str(number)
        folder.mkdir()
        made = yield from relay(step.steps(source, folder, resources), partial(_name_step, label))
        facts.append({**made, "seconds": round(time.perf_counter() - start, 1)})
        write_adaptation(folder, {"pruned": made.get("pruned", read_adaptation(source).get("pruned", []))})
        if source.parent == work:
            shutil.rmtree(source)
        source = folder
    return source, facts


def _check_unchanged(described: Sequence[Mapping[str, Any]], steps: Sequence[AdaptationStep]) -> None:
    """Refuse to write a manifest with the digest of another text than the one that was read."""
    for before, step in zip(described, steps, strict=True):
        files = describe_adaptation(step).get("files", {})
        changed = [name for name, value in before.get("files", {}).items() if files.get(name) != value]
        if changed:
            raise CorpusError.from_change(changed[0])


def _name_step(label: str, event: Progress) -> Progress:
    return replace(event, step=label)


def _describe(
    name: str, source: Path, steps: Sequence[dict[str, Any]], facts: Sequence[Mapping[str, Any]], request: Request
) -> dict[str, Any]:
    earlier = read_adaptation(source)
    done = [
        step | {"facts": made.get("facts", {}), "seconds": made["seconds"]}
        for step, made in zip(steps, facts, strict=True)
    ]
    pruned = next((made["pruned"] for made in reversed(facts) if "pruned" in made), earlier.get("pruned", []))
    origin = earlier.get("teacher") or {"name": name, "digest": request.inputs["teacher"]}
    return {
        "teacher": origin,
        "adapted": [*(earlier.get("adapted") or ()), *done],
        "pruned": pruned,
        "request": request.to_manifest(),
        **describe_program(),
    }


def _read_steps(steps: Sequence[AdaptationSpec | Sequence[AdaptationSpec]]) -> list[AdaptationStep]:
    flat = chain.from_iterable(step if isinstance(step, list | tuple) else [step] for step in steps)
    given = [create(ADAPTATIONS, step) if isinstance(step, str) else step for step in flat]
    if not given:
        cure = "name one, such as prune:sparsity=0.3 (on the command line after --step)"
        raise UsageError.expected("at least one step", "none", where="adapt", cure=cure)
    for step in given:
        if not dataclasses.is_dataclass(step) or isinstance(step, type):
            raise UsageError.expected("names of steps with settings, or steps", describe(step), where="adapt")
    return given


def _locate(name: str) -> Path:
    """The folder of a teacher, which must have safetensors."""
    from stillvec.hub import HubAddress, download
    from stillvec.teachers.character_lstm import is_character_model
    from stillvec.teachers.loader import locate_folder

    folder = locate_folder(name)
    if folder is None and not Path(name).exists():
        address = HubAddress(name.removeprefix("hf://"))
        endings = (".json", ".txt", ".model", ".safetensors")
        folder = download(address, lambda names: [file for file in names if file.endswith(endings)], error=TeacherError)
    if folder is None or is_character_model(str(folder)) or not list_weights(folder):
        cure = "GGUF files, pickled weights and character models cannot be adapted"
        got = "no such weights"
        raise TeacherError.expected("a folder with config.json and safetensors", got, where=name, cure=cure, path=name)
    return folder
