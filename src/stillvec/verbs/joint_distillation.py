"""One space from several teachers: each is distilled on the same sentences, then their spaces are joined by `svd`.

The first teacher has weight 1, the others 0.5 each; rows are of unit length before they are joined. The result of each
teacher is kept in a folder of its own, so that a run that was stopped, or is repeated with one more teacher, reads only
what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stillvec.combination.svd import Svd
from stillvec.errors import UsageError
from stillvec.files import check_place, check_replaceable
from stillvec.formats.stillvec_folder import LAYOUT
from stillvec.pipeline.result_folders import locate_results
from stillvec.registry import require_all
from stillvec.vectors import WordVectors
from stillvec.verbs.transformation import combine, request_combine

if TYPE_CHECKING:
    from stillvec.pipeline.plan import Plan

_OTHERS = 0.5  # weight of the teachers after the first
_DIM = 300


def split_teachers(teacher: str) -> list[str]:
    """The teachers in "mpnet,minilm"; a folder may have a comma in its name."""
    if "," not in teacher or Path(teacher).exists():
        return [teacher]
    teachers = [name.strip() for name in teacher.split(",")]
    if not all(teachers) or len({*teachers}) < len(teachers):
        raise UsageError.expected("different teachers, separated by commas", repr(teacher), where="teacher")
    return teachers


def name_parts(teachers: Sequence[str]) -> dict[str, str]:
    """A short name for each teacher: the last part of its path, with a number if it is taken."""
    names: dict[str, str] = {}
    for teacher in teachers:
        name = Path(teacher.rstrip("/")).name.partition("@")[0]
        n_taken = sum(other == name or other.startswith(f"{name}-") for other in names.values())
        names[teacher] = f"{name}-{n_taken + 1}" if n_taken else name
    return names


def check_joint(arguments: Mapping[str, Any]) -> None:
    """Refuse what is for one teacher only."""
    for name, cure in (
        ("add_to", "distil each teacher with add_to, then combine the results with svd"),
        ("oov", "refine the result with the step subword"),
        ("senses", "give one teacher"),
        ("prompt", "give one teacher"),
    ):
        if arguments[name] is not None:
            raise UsageError.conflict(f"{name} works with one teacher only; {cure}")
    if str(arguments["layer"]) == "all":
        raise UsageError.conflict("layer='all' works with one teacher only, since the layers of teachers differ")
    if arguments["purpose"] not in ("words", "corpus"):
        raise UsageError.conflict(f"purpose={arguments['purpose']!r} works with one teacher only")
    if arguments["engine"] != "local" or "WORLD_SIZE" in os.environ:
        raise UsageError.conflict("several teachers need a single process; distil each, then combine with svd")


def check_teachers(teachers: Sequence[str], arguments: Mapping[str, Any]) -> None:
    """Load each teacher once: one that cannot be loaded is refused before another reads for hours."""
    require_all({"torch": "distill", "transformers": "distill"}, "Distilling")
    from stillvec.teachers import load_teacher

    names = ("device", "precision", "unsafe_weights", "remote_code")
    for teacher in teachers:
        load_teacher(teacher, **{name: arguments[name] for name in names})


def make_combiner(n_teachers: int, dim: int | None) -> Svd:
    return Svd(dim=dim or _DIM, weights=(1.0, *(_OTHERS,) * (n_teachers - 1)))


def locate_parts(out: str | os.PathLike[str], names: Mapping[str, str]) -> dict[str, Path]:
    """The folder of each teacher's own result, beside the output."""
    place = Path(out)
    return {teacher: place.with_name(f"{place.name}.teachers") / name for teacher, name in names.items()}


def check_outputs(out: str | os.PathLike[str], methods: Sequence[str], combiner: Svd, *, force: bool) -> None:
    """Refuse before the work what `combine` would refuse after it."""
    check_place(out)
    for folder in locate_results(out, methods).values():
        if force or not request_combine(combiner).has_settings_of(folder):
            check_replaceable(folder, LAYOUT, force=force)


def join_results(
    results: Mapping[str, Mapping[str, WordVectors]],
    parts: Mapping[str, Path],
    names: Mapping[str, str],
    dim: int | None,
    out: str | os.PathLike[str] | None,
    *,
    force: bool,
) -> dict[str, WordVectors]:
    """Teacher → method → vectors, as one set of vectors per method."""
    joined = {}
    methods = [*next(iter(results.values()))]
    for method in methods:
        sets = [each[method] for each in results.values()]
        sources: Sequence[Any] = [locate_results(parts[t], methods)[method] for t in results] if parts else sets
        combiner = make_combiner(len(sets), dim)
        combiner = replace(combiner, dim=min(combiner.dim or _DIM, sum(each.dim for each in sets)))
        place = None if out is None else locate_results(out, methods)[method]
        joined[method] = combine(sources, combiner, names=[*names.values()], out=place, force=force)
    return joined


def add_plans(plans: Sequence[Plan]) -> Plan:
    """What several runs take, one after the other."""
    first = plans[0]
    sums = {
        name: sum(getattr(each, name) for each in plans)
        for name in ("n_sentences", "n_tokens", "seconds", "disk", "store")
    }
    peaks = {name: max(getattr(each, name) for each in plans) for name in ("memory", "device_memory", "checkpoint")}
    return replace(first, **sums, **peaks)
