"""One space in, one out: a step is a frozen set of settings, called with vectors, and never changes its input."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from stillvec.refine.refining import read_step, refine, refine_steps, unknown_steps
from stillvec.refine.steps import STEPS, Step
from stillvec.vectors import WordVectors

__all__ = ["STEPS", "Step", "read_step", "refine", "refine_steps", "unknown_steps"]


class _Callable(ModuleType):
    """Importing this room puts it under the name `stillvec.refine`, where users look for the function."""

    def __call__(self, *arguments: Any) -> WordVectors:
        return refine(*arguments)


sys.modules[__name__].__class__ = _Callable
