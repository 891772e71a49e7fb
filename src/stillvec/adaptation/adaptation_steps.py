"""The registry of the steps of `adapt`, what a step is, and how the manifest describes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

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


@runtime_checkable
class MakesModel(Protocol):
    """A step that needs no teacher."""

    MAKES_MODEL: ClassVar[bool]


@runtime_checkable
class ReadsFiles(Protocol):
    """A step whose settings name files that it reads."""

    def list_inputs(self) -> list[Path]: ...


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
    """Name, settings, and digests of the files that the step reads."""
    settings = dataclasses.asdict(step)  # type: ignore[call-overload]
    inputs = step.list_inputs() if isinstance(step, ReadsFiles) else []
    files = {str(path): file_digest(path) for path in inputs if path.is_file()}
    return {"step": ADAPTATIONS.name_of(step), "settings": settings} | ({"files": files} if files else {})
