"""What the kinds of heads have in common: settings, training, and prediction from arrays."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.heads.labelled_data import LabelledData, Unit
from stillvec.heads.numpy_layers import Floats32, sigmoid, softmax, unit
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.training_options import TrainingOption
from stillvec.numerics.array_types import Floats, Rows
from stillvec.registry import check_least, check_positive, settings_from

if TYPE_CHECKING:
    import torch

    from stillvec.heads.objectives import Objective
    from stillvec.training.checkpoint import Checkpoint

Arrays = dict[str, NDArray[Any]]
THRESHOLDS = np.linspace(0.05, 0.95, 19)  # from which a label is given, where a text may have several


class Trained(NamedTuple):
    """A trained head and its quality on development items: accuracy, micro-F1 of labels, or F1 of spans."""

    arrays: Arrays  # an array `table` has the changed vectors of the words that were read
    quality: float
    threshold: float = 0.5  # probability from which a label is given, where an item may have several


@dataclass(frozen=True)
class Lesson:
    """What a head learns from: the items as sequences, their labels, and how."""

    data: LabelledData
    sequences: Sequences  # of all items, then of unlabelled texts
    targets: Floats  # (n, k) of all items
    options: Mapping[str, TrainingOption] = field(default_factory=dict)  # those that are active
    soft: NDArray[np.float32] | None = None  # (n + m, k) a teacher's labels of the items and of unlabelled texts
    widths: tuple[int, ...] = ()  # of the sources that a row has side by side, if there are several
    languages: Rows | None = None  # (n + m,) for `invariant`; negative for development and test items
    seeds: tuple[int, ...] = (0,)
    device: str = "auto"
    checkpoint: Checkpoint | None = None

    @property
    def unlabelled(self) -> Rows:
        """The texts that only the teacher labelled."""
        return np.arange(len(self.data.items), len(self.sequences))

    def all_targets(self) -> Floats:
        """(n + m, k), zero for unlabelled texts."""
        return np.pad(self.targets, ((0, len(self.unlabelled)), (0, 0)))

    def resolve_device(self) -> torch.device:
        from stillvec.teachers.device import resolve_device  # importing torch takes seconds

        return resolve_device(self.device)


@dataclass(frozen=True)
class HeadKind:
    """The settings of a head; `fit` trains it and returns its arrays, `score` reads them with NumPy."""

    unit: ClassVar[Unit] = "text"

    def fit(self, lesson: Lesson) -> Generator[float, None, Trained]:
        """Train; yields the fraction done."""
        raise NotImplementedError

    def score(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        """The scores of labels (n, k)."""
        raise NotImplementedError

    def explain(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, label: Rows) -> Floats32:
        """How much each word of the texts (N,) speaks for the label of its text (n,)."""
        raise UsageError(f"A head {type(self).__name__.lower()!r} has no weights of words.", code="no-explanation")

    @property
    def several_labels(self) -> bool:
        return True


@runtime_checkable
class EncodesTexts(Protocol):
    """A head that has vectors of texts."""

    def encode(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        """What its last layer reads (n, F)."""


@dataclass(frozen=True)
class NetworkHead(HeadKind):
    """A head that is trained by the loop of `networks.py`."""

    epochs: int = 20  # at most
    patience: int = 3  # epochs without a better development score, after which training stops
    rate: float = 1e-3
    tuned: bool = False  # whether the vectors of words are trained along
    objective: str = "cross_entropy"  # or coco, arcface, center, contrastive, triplet
    scale: float | None = None  # of the objective
    margin: float | None = None  # of the objective
    weight: float | None = None  # of the objective

    def __post_init__(self) -> None:
        check_least(self, epochs=1, patience=1)
        check_positive(self, "rate")

    def read_objective(self) -> Objective:
        from stillvec.heads.objectives import OBJECTIVES  # importing torch takes seconds

        given = {name: getattr(self, name) for name in ("scale", "margin", "weight")}
        settings = {name: value for name, value in given.items() if value is not None}
        return settings_from(OBJECTIVES[self.objective], settings, f"objective {self.objective!r}")

    @property
    def compares_by_cosine(self) -> bool:
        return self.objective in ("coco", "arcface", "contrastive", "triplet")

    def score_features(self, arrays: Mapping[str, NDArray[Any]], features: Floats32) -> Floats32:
        """Of each label (n, k)."""
        given = unit(features) if self.compares_by_cosine else features
        return np.asarray(given @ arrays["weights"] + arrays["bias"], np.float32)

    def encode(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        """The features of texts (n, F)."""
        raise NotImplementedError

    def score(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        return self.score_features(arrays, self.encode(arrays, sequences))


def to_probabilities(scores: Floats32, *, several: bool) -> Floats32:
    """Of each label (n, k): they sum to one, or each label has its own if a text may have several."""
    return sigmoid(scores) if several else softmax(scores)


def choose_threshold(likely: NDArray[Any], gold: Floats) -> tuple[float, float]:
    """The probability from which a label is given that is best by micro-F1 (of equals that near 0.5), and its F1."""
    scored = [(micro_f1(likely > value, gold > 0), -abs(value - 0.5), value) for value in THRESHOLDS.tolist()]
    quality, _, threshold = max(scored)
    return threshold, quality


def micro_f1(said: NDArray[np.bool_], gold: NDArray[np.bool_]) -> float:
    return 2 * float((said & gold).sum()) / max(1, int(said.sum() + gold.sum()))
