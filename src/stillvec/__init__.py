"""stillvec distils contextual language models into static word vectors, on your own text."""

from typing import TYPE_CHECKING, Any

from stillvec.errors import StillvecError
from stillvec.registry import import_attribute

if TYPE_CHECKING:
    from stillvec.analysis import analyze
    from stillvec.corpus import Corpus
    from stillvec.evaluation import evaluate
    from stillvec.exploration import explore
    from stillvec.exploration.field_test import judge
    from stillvec.formats import load, save
    from stillvec.heads.fitted_head import Head
    from stillvec.heads.head_folder import load_head
    from stillvec.integrations.scikit_learn import TextVectorizer
    from stillvec.integrations.text_classifier import TextClassifier
    from stillvec.plotting import plot
    from stillvec.search import SearchIndex
    from stillvec.service import serve
    from stillvec.vectors import WordVectors
    from stillvec.verbs.baseline_training import train, train_all
    from stillvec.verbs.distillation import distill, distill_all, plan
    from stillvec.verbs.fitting import fit
    from stillvec.verbs.glossary_extraction import extract_glossary
    from stillvec.verbs.hub_upload import push_to_hub
    from stillvec.verbs.indexing import index
    from stillvec.verbs.recipe import run
    from stillvec.verbs.teacher_adaptation import adapt
    from stillvec.verbs.transformation import combine, convert, merge, refine
    from stillvec.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "Corpus",
    "Head",
    "SearchIndex",
    "StillvecError",
    "TextClassifier",
    "TextVectorizer",
    "Vocabulary",
    "WordVectors",
    "adapt",
    "analyze",
    "combine",
    "convert",
    "distill",
    "distill_all",
    "evaluate",
    "explore",
    "extract_glossary",
    "fit",
    "index",
    "judge",
    "load",
    "load_head",
    "merge",
    "plan",
    "plot",
    "push_to_hub",
    "refine",
    "run",
    "save",
    "serve",
    "train",
    "train_all",
]

_LAZY = {
    "Corpus": "stillvec.corpus",
    "Head": "stillvec.heads.fitted_head",
    "SearchIndex": "stillvec.search",
    "TextClassifier": "stillvec.integrations.text_classifier",
    "TextVectorizer": "stillvec.integrations.scikit_learn",
    "Vocabulary": "stillvec.vocabulary",
    "WordVectors": "stillvec.vectors",
    "adapt": "stillvec.verbs.teacher_adaptation",
    "analyze": "stillvec.analysis",
    "combine": "stillvec.verbs.transformation",
    "convert": "stillvec.verbs.transformation",
    "distill": "stillvec.verbs.distillation",
    "distill_all": "stillvec.verbs.distillation",
    "evaluate": "stillvec.evaluation",
    "explore": "stillvec.exploration",
    "extract_glossary": "stillvec.verbs.glossary_extraction",
    "fit": "stillvec.verbs.fitting",
    "index": "stillvec.verbs.indexing",
    "judge": "stillvec.exploration.field_test",
    "load": "stillvec.formats",
    "load_head": "stillvec.heads.head_folder",
    "merge": "stillvec.verbs.transformation",
    "plan": "stillvec.verbs.distillation",
    "plot": "stillvec.plotting",
    "push_to_hub": "stillvec.verbs.hub_upload",
    "refine": "stillvec.verbs.transformation",
    "run": "stillvec.verbs.recipe",
    "save": "stillvec.formats",
    "serve": "stillvec.service",
    "train": "stillvec.verbs.baseline_training",
    "train_all": "stillvec.verbs.baseline_training",
}


def __getattr__(name: str) -> Any:
    return import_attribute(__name__, name, _LAZY)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
