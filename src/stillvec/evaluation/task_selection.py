"""Which tasks run, with which settings: those named, or all that are not costly."""

import dataclasses
from collections.abc import Sequence

from stillvec.errors import UsageError
from stillvec.evaluation.tasks import TASKS, CostlyTask, Task
from stillvec.notation import parse_specs
from stillvec.registry import create


def split_tasks(text: str) -> list[str]:
    """`similarity,classification:seeds=3,quick=true` → the tasks, each with its settings."""
    specs = parse_specs(text, TASKS)
    for spec in specs:
        if spec.name not in TASKS:
            raise UsageError.unknown("task", spec.name, TASKS)
    return [*map(str, specs)]


def select_tasks(
    tasks: Sequence[str] | None, *, costly: bool = False, quick: bool = False
) -> tuple[dict[str, Task], dict[str, Task]]:
    """Tasks by name, and the costly ones that are left out because they were not requested."""
    selected: dict[str, Task] = {}
    skipped: dict[str, Task] = {}
    if tasks is None:
        for name in TASKS:
            task = TASKS[name]()
            (skipped if task.costly and not costly else selected)[name] = task
    else:
        for text in dict.fromkeys(tasks):
            name = text.partition(":")[0].strip()
            if name in selected:
                raise UsageError.conflict(f"The task {name!r} is given twice, with different settings")
            selected[name] = create(TASKS, text)
    return {name: _quicken(task) if quick else task for name, task in selected.items()}, skipped


def _quicken(task: Task) -> Task:
    return dataclasses.replace(task, quick=True) if isinstance(task, CostlyTask) else task
