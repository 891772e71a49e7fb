"""Which tasks are run, with which settings: those named, or all that are not costly."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from stillvec.errors import UsageError
from stillvec.evaluation.tasks import TASKS, CostlyTask, Task
from stillvec.notation import parse_specs
from stillvec.registry import create


def split_tasks(text: str) -> list[str]:
    """`similarity,classification:seeds=3,quick=true` → the tasks, each with its settings behind it."""
    specs = parse_specs(text, TASKS)
    for spec in specs:
        if spec.name not in TASKS:
            raise UsageError.unknown("task", spec.name, TASKS)
    return [*map(str, specs)]


def chosen_tasks(
    tasks: Sequence[str] | None, *, costly: bool = False, quick: bool = False
) -> tuple[dict[str, Task], dict[str, Task]]:
    """Tasks by name, and beside them the costly ones that were left out since nobody named them."""
    if tasks is None:
        every = {name: TASKS[name]() for name in TASKS}
        dear = {name for name, task in every.items() if task.costly and not costly}
        chosen = {name: task for name, task in every.items() if name not in dear}
        left = {name: every[name] for name in every if name in dear}
    else:
        chosen, left = {}, {}
        for text in dict.fromkeys(tasks):
            name = text.partition(":")[0].strip()
            if name in chosen:
                raise UsageError(f"The task {name!r} is named twice with other settings; name it once.")
            chosen[name] = create(TASKS, text)
    return ({name: _quicken(task) for name, task in chosen.items()} if quick else chosen), left


def _quicken(task: Task) -> Task:
    return dataclasses.replace(task, quick=True) if isinstance(task, CostlyTask) else task
