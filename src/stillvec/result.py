"""What a method returns: vectors with their provenance, notes, statistics and its model."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from stillvec.formats import write_folder
from stillvec.formats.early_statistics import EarlyStatistics
from stillvec.formats.request import Request
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Result:
    """The result of one method."""

    vectors: WordVectors
    notes: Mapping[str, Any] = field(default_factory=dict)  # what the method decided or measured
    model: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # learnt beside the vectors
    statistics: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # what merging and adding to it need

    @property
    def manifest(self) -> Mapping[str, Any]:
        """How the vectors were made."""
        return self.vectors.provenance

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        statistics: bool = True,
        request: Request | None = None,
        early: EarlyStatistics | None = None,
        force: bool = False,
    ) -> None:
        """Write a stillvec folder, with or without the statistics, and what decided it; `early` writes them already."""
        arrays = self.statistics if statistics and self.statistics else None
        decided = None if request is None else request.to_manifest()
        folder = Path(path)
        write_folder(self.vectors, folder, self.manifest, arrays, self.model, request=decided, early=early, force=force)


@dataclass(frozen=True)
class MethodStatistics:
    """An event of a run: vectors are about to be computed from these arrays, which do not change."""

    name: str
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class MethodResult:
    """An event of a run: one of its methods is finished."""

    name: str
    result: Result
