"""What a task is: it finds its files, reads their items, answers them with vectors, and scores the answers.

The four steps are separate so that the expensive one, `answer`, runs once per set of vectors, and the answers can
then be scored on any subset of the items: those that this set covers, or those that all sets cover.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.evaluation.intervals import Estimate, Floats, Mask, Resampling, Rows, mean_estimate
from stillvec.files.path_names import files_in
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import Representation
from stillvec.heads.splits import whole_datasets
from stillvec.notation import parse_specs
from stillvec.progress import drain
from stillvec.registry import Registry, create
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Items:
    """The questions of one dataset and the correct answers."""

    texts: tuple[tuple[str, ...], ...]  # (n, 2) words or sentences, (n, 4) an analogy; a word and its translations
    gold: Floats  # (n,)
    sections: tuple[str, ...] = ()  # (n,) or none

    def __len__(self) -> int:
        return len(self.texts)

    def members(self) -> dict[str, Rows]:
        """The items of each section, in the order of the file; they may overlap."""
        members: dict[str, list[int]] = {}
        for number, section in enumerate(self.sections):
            members.setdefault(section, []).append(number)
        return {section: np.array(numbers) for section, numbers in members.items()}


@dataclass(frozen=True)
class Answers:
    """What a set of vectors answers to each item."""

    covered: Mask  # (n,) every word that the item needs has a vector
    values: Mapping[str, NDArray[Any]]  # metric → (n,), undefined at skipped items; a task may add other arrays


@dataclass(frozen=True)
class Task:
    """One kind of test; the settings are the fields of the subclass, its facts the class variables.

    A subclass overrides `answer`, or `answer_steps` if answering takes long.
    """

    files: ClassVar[tuple[str, ...]] = ()  # the folder of its files and their endings
    item_unit: ClassVar[Literal["word", "text"]] = "word"  # covered: all words of an item, or one word per text
    ordered: ClassVar[bool] = True  # sets can be compared and ranked
    lower: ClassVar[tuple[str, ...]] = ()  # endings of metrics of which less is better; of all others more is
    averaged: ClassVar[bool] = True  # counts in the mean over tasks by which sets are ranked
    costly: ClassVar[bool] = False  # trains a model: runs only on request
    scale: ClassVar[int] = 100  # scores are shown multiplied by this
    unscaled: ClassVar[tuple[str, ...]] = ()  # endings of metrics that are shown as they are
    max_difference: ClassVar[float] = 1.0  # the largest possible difference of two scores; 2 for correlations
    leaks: ClassVar[bool] = False  # items are pairs of words that a lexicon may contain
    controls: ClassVar[tuple[str, ...]] = ()  # endings of metrics that are only a reference for the others
    summary: ClassVar[str] = ""  # the name of all metrics together; default: their list
    takes_encoders: ClassVar[bool] = False  # one vector per text is enough, which every encoder has
    item_source: ClassVar[str] = ""  # what the items are if they are taken from the vectors: then it needs no files

    @classmethod
    def ranks_by(cls, metric: str) -> bool:
        """Whether sets are compared and ranked by this metric."""
        return cls.ordered and not metric.endswith(cls.controls)

    @classmethod
    def prefers_less(cls, metric: str) -> bool:
        """Whether a lower value of this metric is better."""
        return bool(cls.lower) and metric.endswith(cls.lower)

    @classmethod
    def scale_of(cls, metric: str) -> int:
        """What values of this metric are multiplied by where they are shown."""
        return 1 if cls.unscaled and metric.endswith(cls.unscaled) else cls.scale

    def find(self, folder: Path) -> list[Path]:
        """The files of this task in a data folder."""
        return files_in(folder / self.files[0], self.files[1:]) if self.files else []

    def read(self, path: Path) -> Items:
        """The items of a file; a DatasetError names the file and line of a malformed item."""
        raise NotImplementedError

    def choose_items(self, sets: Sequence[WordVectors]) -> Items:
        """Items from the vectors that are evaluated, of a task with an `item_source`."""
        raise NotImplementedError

    def own_data(self) -> tuple[Path, ...]:
        """Files that its settings name, on which the answers depend."""
        return ()

    def other_data(self, path: Path) -> tuple[Path, ...]:
        """Other datasets on which the answers to a file depend."""
        return ()

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        """Answer every item, or with the policy "skip" those that are covered."""
        return drain(self.answer_steps(lookup, items))

    def answer_steps(self, lookup: Lookup, items: Items) -> Generator[float, None, Answers]:
        """The same as a generator of the fraction done."""
        yield from ()
        return self.answer(lookup, items)

    def narrow(self, items: Items, answers: Answers, chosen: Rows) -> Answers:
        """The answers had only the chosen items been asked, where an answer depends on the other items."""
        return answers

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        """Metric → its estimate on the chosen items; by default the mean of the answers to each."""
        by_metric = {metric: values for metric, values in answers.values.items() if values.ndim == 1}
        return {metric: mean_estimate(values[chosen], resampling) for metric, values in by_metric.items()}


@dataclass(frozen=True)
class ContextualTask(Task):
    """A task on texts or sentences, which vectors and teachers answer."""

    learns_mix: ClassVar[bool] = False  # learns the weights of the layers of teacher:NAME@mix (`layer_mix.py`)

    def answer(self, lookup: Representation, items: Items) -> Answers:
        return drain(self.answer_steps(lookup, items))

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        """A generator of the fraction done; reading with a teacher (`read_tokens_steps`, ...) is part of it."""
        yield from ()
        return self.answer(lookup, items)


@dataclass(frozen=True)
class CostlyTask(Task):
    """A task on texts that takes minutes: it runs only on request and has a quick form."""

    quick: bool = field(default=False, kw_only=True)  # less data, one seed

    item_unit: ClassVar[Literal["word", "text"]] = "text"
    costly: ClassVar[bool] = True

    def find(self, folder: Path) -> list[Path]:
        return whole_datasets(folder / self.files[0], self.files[1:])


@dataclass(frozen=True)
class TokenTask(ContextualTask, CostlyTask):
    """A task that trains a model on the rows of words or texts, which vectors and teachers have."""


@dataclass(frozen=True)
class TextTask(TokenTask):
    """A task that asks only for a vector of each whole text, which vectors, teachers and other encoders have."""

    takes_encoders: ClassVar[bool] = True


@runtime_checkable
class TunesVectors(Protocol):
    """A task that may train the vectors of words along with its model."""

    @property
    def tuned(self) -> bool: ...


TASKS: Registry[type[Task]] = Registry(
    "task",
    {
        "similarity": "stillvec.evaluation.similarity:Similarity",
        "analogy": "stillvec.evaluation.analogy:Analogy",
        "relation": "stillvec.evaluation.relation:Relation",
        "categorization": "stillvec.evaluation.categorization:Categorization",
        "compounds": "stillvec.evaluation.compounds:Compounds",
        "outliers": "stillvec.evaluation.outliers:Outliers",
        "synonyms": "stillvec.evaluation.synonyms:Synonyms",
        "sentences": "stillvec.evaluation.sentences:Sentences",
        "classification": "stillvec.evaluation.classification:Classification",
        "retrieval": "stillvec.evaluation.retrieval:Retrieval",
        "clustering": "stillvec.evaluation.clustering:TextClustering",
        "bitext": "stillvec.evaluation.bitext:Bitext",
        "multilabel": "stillvec.evaluation.multilabel:Multilabel",
        "tagging": "stillvec.evaluation.tagging:Tagging",
        "probing": "stillvec.evaluation.probing:Probing",
        "labels": "stillvec.evaluation.labels:Labels",
        "information": "stillvec.evaluation.information:MutualInformation",
        "spans": "stillvec.evaluation.spans:Spans",
        "pairs": "stillvec.evaluation.pairs:Pairs",
        "substitution": "stillvec.evaluation.substitution:Substitution",
        "composition": "stillvec.evaluation.composition:Composition",
        "flips": "stillvec.evaluation.flips:Flips",
        "specificity": "stillvec.evaluation.specificity:Specificity",
        "word_in_context": "stillvec.evaluation.word_in_context:WordInContext",
        "attributes": "stillvec.evaluation.attributes:Attributes",
        "translation": "stillvec.evaluation.translation:Translation",
        "bias": "stillvec.evaluation.bias:Bias",
        "neighbours": "stillvec.evaluation.crowding:Crowding",
        "glossary": "stillvec.evaluation.glossary:Glossary",
    },
)


def task_class(name: str) -> type[Task]:
    """The class of a task by name; a name from a report of another version has the default facts."""
    return TASKS[name] if name in TASKS else Task  # noqa: SIM401 - a registry has no get


def refuse_mix(what: str) -> UsageError:
    """The error of what cannot learn the weights of layers."""
    able = ", ".join(name for name in TASKS if getattr(TASKS[name], "learns_mix", False))
    cure = "give a layer (@4), or the mean of several (@4-6, @all)"
    return UsageError.conflict(f"{what} needs weights of the layers, which only {able} learn", cure=cure)


def check_occurrences(tasks: Mapping[str, Task], name: str, *, is_mix: bool = False) -> None:
    """Raise an error if a task needs a vector per word, or trains it, while `name` has one per occurrence."""
    others = [label for label, task in tasks.items() if not isinstance(task, ContextualTask)]
    if others:
        able = [label for label in TASKS if issubclass(TASKS[label], ContextualTask)]
        reason = f"The task {others[0]!r} needs one vector per word, but {name} has one per occurrence"
        raise UsageError.conflict(reason, cure=f"give it only tasks that read sentences: --tasks {','.join(able)}")
    tuned = [label for label, task in tasks.items() if isinstance(task, TunesVectors) and task.tuned]
    if tuned:
        reason = f"The task {tuned[0]!r} trains vectors (tuned=true), but {name} has one per occurrence"
        raise UsageError.conflict(reason, cure="leave out tuned=true, or give it vectors that were distilled from it")
    for label, task in tasks.items() if is_mix else ():
        if isinstance(task, ContextualTask) and not task.learns_mix:
            raise refuse_mix(f"The task {label!r} with {name}")


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
            if costly or not task.item_source:  # without files, a task runs if it is named
                (skipped if task.costly and not costly else selected)[name] = task
    else:
        for text in dict.fromkeys(tasks):
            name = text.partition(":")[0].strip()
            if name in selected:
                raise UsageError.conflict(f"The task {name!r} is given twice, with different settings")
            selected[name] = create(TASKS, text)
    if quick:
        selected |= {name: replace(task, quick=True) for name, task in selected.items() if isinstance(task, CostlyTask)}
    return selected, skipped
