"""How good vectors are: one task family, one file; every score with its coverage and its interval."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from stillvec.evaluate.evaluating import Evaluation, evaluate
from stillvec.evaluate.means import Difference, paired_difference
from stillvec.evaluate.report import Comparison, Detail, Overlap, PolicyRanking, Report, Score
from stillvec.evaluate.tasks import TASKS

__all__ = [
    "TASKS",
    "Comparison",
    "Detail",
    "Difference",
    "Evaluation",
    "Overlap",
    "PolicyRanking",
    "Report",
    "Score",
    "evaluate",
    "paired_difference",
]


class _Callable(ModuleType):
    """Importing this room puts it under the name `stillvec.evaluate`, where users look for the function."""

    def __call__(self, *arguments: Any, **settings: Any) -> Report:
        return evaluate(*arguments, **settings)


sys.modules[__name__].__class__ = _Callable
