"""The registry of the steps of `adapt`, what a step is, and how the manifest describes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stillvec.files import file_digest
from stillvec.progress import Progress
from stillvec.registry import Registry


@dataclass(frozen=True)
class AdaptationResources:
    """What a step may use; none of it changes the result, except that a GPU rounds differently."""

    device: str = "auto"
    checkpoints: Path | None = None  # folder of the checkpoints of training
    resume: bool = False


class AdaptationStep(Protocol):
    """A frozen dataclass of settings."""

    def steps(self, source: Path, target: Path, resources: AdaptationResources) -> Generator[Progress, None, Facts]:
        """Write the model of `source`, changed, into the empty folder `target`; returns facts for the manifest."""


Facts = dict[str, Any]
ADAPTATIONS: Registry[type[AdaptationStep]] = Registry(
    "step of adapt",
    {
        "pretrain": "stillvec.adaptation.pretraining:Pretraining",
        "prune": "stillvec.adaptation.weight_pruning:WeightPruning",
        "tune": "stillvec.adaptation.tuning:Tuning",
    },
)


def describe_adaptation(step: AdaptationStep) -> dict[str, Any]:
    """Name, settings, and digests of the files that the step reads (`list_inputs`)."""
    settings = dataclasses.asdict(step)  # type: ignore[call-overload]
    list_inputs: Callable[[], list[Path]] | None = getattr(step, "list_inputs", None)
    files = {str(path): file_digest(path) for path in list_inputs() if path.is_file()} if list_inputs else {}
    return {"step": ADAPTATIONS.name_of(step), "settings": settings} | ({"files": files} if files else {})
