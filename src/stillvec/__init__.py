"""stillvec distils contextual language models into static word vectors, on your own text."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stillvec.errors import StillvecError
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from stillvec.corpus import Corpus
    from stillvec.evaluation import evaluate
    from stillvec.formats import load, save
    from stillvec.integrations.scikit_learn import TextVectorizer
    from stillvec.pipeline import distill, train
    from stillvec.plotting import plot
    from stillvec.refinement import refine

__version__ = "0.1.0"

__all__ = [
    "Corpus",
    "StillvecError",
    "TextVectorizer",
    "Vocabulary",
    "WordVectors",
    "distill",
    "evaluate",
    "load",
    "plot",
    "refine",
    "save",
    "train",
]

_LATER = {
    "Corpus": "stillvec.corpus",
    "TextVectorizer": "stillvec.integrations.scikit_learn",
    "distill": "stillvec.pipeline",
    "evaluate": "stillvec.evaluation",
    "load": "stillvec.formats",
    "plot": "stillvec.plotting",
    "refine": "stillvec.refinement",
    "save": "stillvec.formats",
    "train": "stillvec.pipeline",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'stillvec' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
