"""Training options of heads: `--with NAME[:key=value,...]`. Each has a zero, which gives the bytes of the plain head.

teacher        learn from the labels that a model gives, also to texts without labels (Adhikari et al. 2020)
adversarial    learn from perturbed word vectors: ADV, SMART, and both, ALICE (Pereira et al. 2020)
auxiliary      a tagger also learns where entities are, without their types (Liu, Winata & Fung 2020)
experts        a tagger mixes one expert per type of entity, by a gate that learns the types (the same)
invariant      a tagger reads words through a map that hides their language (Lange et al. 2020)
concat, residual, tying, masking    keep the states of `attention` near their words (Tutek & Šnajder 2020)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Literal

from stillvec.registry import Registry, check_least

TEXT_HEADS = ("linear", "cnn", "attention", "pair")


@dataclass(frozen=True)
class TrainingOption:
    """Numbers are at least 0, and the option changes nothing where one of its `zeros` is 0."""

    heads: ClassVar[tuple[str, ...]] = ()  # that it can be used with
    zeros: ClassVar[tuple[str, ...]] = ("weight",)

    def __post_init__(self) -> None:
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        check_least(self, **{name: 0 for name, value in settings.items() if isinstance(value, int | float)})

    @property
    def is_active(self) -> bool:
        """Whether it changes the training."""
        return all(getattr(self, name) != 0 for name in self.zeros)


@dataclass(frozen=True)
class WeightedOption(TrainingOption):
    weight: float = 1.0  # of the loss that it adds


@dataclass(frozen=True)
class SwitchedOption(TrainingOption):
    zeros: ClassVar[tuple[str, ...]] = ("on",)
    on: bool = True


@dataclass(frozen=True)
class TeacherOption(TrainingOption):
    """Add `weight` KL between the labels of a teacher and those of the head to the loss."""

    heads: ClassVar[tuple[str, ...]] = TEXT_HEADS
    model: str  # a folder of a tuned model (with a classifier), or any teacher: then a linear probe on it
    weight: float | None = None  # of the divergence; None: 4, or 1 with several labels per text
    direction: Literal["teacher", "student"] = "teacher"  # KL(teacher ‖ head), or KL(head ‖ teacher) as in the paper
    augment: int = 0  # changed copies of each training text, labelled by the teacher only
    texts: str | None = None  # a file of unlabelled texts, one per line, labelled by the teacher only
    max_texts: int = 20000  # of these
    length: int = 512  # tokens of a text that a tuned model reads
    hard: bool = False  # the teacher's best label instead of its probabilities

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, max_texts=1)

    def choose_weight(self, *, several: bool) -> float:
        return (1.0 if several else 4.0) if self.weight is None else self.weight


@dataclass(frozen=True)
class Adversarial(TrainingOption):
    """Add the loss on word vectors that are perturbed by at most `epsilon`, in units of their root mean square."""

    heads: ClassVar[tuple[str, ...]] = TEXT_HEADS
    zeros: ClassVar[tuple[str, ...]] = ("epsilon",)
    epsilon: float = 0.1  # largest change of a number
    alpha: float = 1.0  # weight of the divergence between perturbed and clean scores (SMART)
    label: float = 1.0  # weight of the loss of the labels on perturbed vectors (ADV)
    clean: float = 1.0  # weight of the loss on clean vectors; 0 in the paper's formula

    @property
    def is_active(self) -> bool:
        return super().is_active and (self.alpha > 0 or self.label > 0)


@dataclass(frozen=True)
class Tying(WeightedOption):
    """Add `weight` times the mean squared distance of a state from its word."""

    heads: ClassVar[tuple[str, ...]] = ("attention",)


@dataclass(frozen=True)
class Masking(WeightedOption):
    """Add `weight` times the loss of predicting masked words from their states, among the words of the batch."""

    heads: ClassVar[tuple[str, ...]] = ("attention",)
    zeros: ClassVar[tuple[str, ...]] = ("weight", "share")
    share: float = 0.15  # of words that are masked


@dataclass(frozen=True)
class ConcatOption(SwitchedOption):
    """A state is [state; word]."""

    heads: ClassVar[tuple[str, ...]] = ("attention",)


@dataclass(frozen=True)
class Residual(SwitchedOption):
    """A state is state + word."""

    heads: ClassVar[tuple[str, ...]] = ("attention",)


@dataclass(frozen=True)
class Auxiliary(WeightedOption):
    """Add `weight` times the loss of a second field, whose tags are those of entities without their types."""

    heads: ClassVar[tuple[str, ...]] = ("tagger",)


@dataclass(frozen=True)
class Experts(TrainingOption):
    """One expert per type and one for O, mixed by a gate that is trained with `weight` to know the type."""

    heads: ClassVar[tuple[str, ...]] = ("tagger",)
    zeros: ClassVar[tuple[str, ...]] = ("size",)
    size: int = 200  # of the features of an expert; 0: none
    weight: float = 1.0  # of the loss of the gate


@dataclass(frozen=True)
class Invariant(TrainingOption):
    """Words pass `tanh(x + x A)`, trained with `weight` against a network that tells their language from it.

    Each dataset and each file of `texts` is a language. Try vectors whose languages are centred first.
    """

    heads: ClassVar[tuple[str, ...]] = ("tagger",)
    weight: float = 0.1  # of the reversed gradient of the network that tells languages
    texts: tuple[Path, ...] = ()  # files without labels, one language each, a sentence per line
    hidden: int = 100  # units of that network
    n_words: int = 64  # of each language that it reads per step

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, hidden=1, n_words=1)


OPTIONS: Registry[type[TrainingOption]] = Registry(
    "training option",
    {
        "teacher": "stillvec.heads.training_options:TeacherOption",
        "adversarial": "stillvec.heads.training_options:Adversarial",
        "auxiliary": "stillvec.heads.training_options:Auxiliary",
        "experts": "stillvec.heads.training_options:Experts",
        "invariant": "stillvec.heads.training_options:Invariant",
        "tying": "stillvec.heads.training_options:Tying",
        "masking": "stillvec.heads.training_options:Masking",
        "concat": "stillvec.heads.training_options:ConcatOption",
        "residual": "stillvec.heads.training_options:Residual",
    },
)
