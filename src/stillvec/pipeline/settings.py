"""The settings of a distillation, as a recipe or a command line gives them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stillvec.errors import UsageError
from stillvec.learners import LEARNERS, Learner
from stillvec.notation import Spec, Value, parse_specs
from stillvec.refinement import unknown_steps
from stillvec.registry import Registry, settings_from

CONTEXTS = 20  # docs/results.md: what fewer and more contexts cost and give


@dataclass(frozen=True)
class Distillation:
    """Everything that decides the result, and nothing else."""

    teacher: str = "minilm"
    method: str = "auto"  # or several: "auto,aggregate:contexts=max,additive"
    purpose: str = "words"  # or "sentences": what the vectors are for, which `auto` looks at
    layer: str | None = None
    dim: int | None = None
    dictionary: str | None = None
    min_count: int = 5
    max_words: int | None = None
    keep: tuple[str, ...] = ()  # words that must be in
    lowercase: bool = True
    contexts: int | None = CONTEXTS  # of each word; None: read everything
    seed: int = 0
    unknown: str | None = None  # "subword": n-grams that give words never seen a vector
    device: str = "auto"
    precision: str = "auto"
    unsafe_weights: bool = False
    remote_code: bool = False

    def __post_init__(self) -> None:
        for name, least in (("min_count", 1), ("max_words", 1), ("contexts", 1), ("dim", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"The setting {name} is at least {least}, and {value} came.")
        if self.purpose not in ("words", "sentences"):
            raise UsageError(f"Vectors are for words or for sentences, and {self.purpose!r} came.")
        unknown_steps(self.unknown)  # a wrong one is told before the work

    def learners(self, depth: int, *, corpus: bool = True) -> dict[str, Learner]:
        """The learners by the name of their result; `layer="all"` gives one for each layer of `aggregate`.

        Who has a setting `corpus` is told where there is none, and need not listen for one.
        """
        found: dict[str, Learner] = {}
        for label, spec in parse_methods(self.method):
            name, given = spec.name, spec.settings
            kind = LEARNERS[name]
            if not corpus and "corpus" in _fields(kind):
                given = {**given, "corpus": "false"}
            if self.layer == "all" and name == "aggregate":
                for layer in range(depth + 1):
                    found[f"{label}-layer-{layer}"] = self._learner(kind, {**given, "layer": str(layer)})
            else:
                found[label] = self._learner(kind, given)
        self._check_taken(found.values())
        return found

    def _learner(self, kind: type[Learner], given: Mapping[str, Value]) -> Learner:
        """The general settings go to whoever has a setting of that name; the method's own come last."""
        general = {**self._general(), "dim": self.dim, "seed": self.seed or None}
        values = {name: value for name, value in general.items() if value is not None}
        taken = {name: value for name, value in values.items() if name in _fields(kind)}
        return settings_from(kind, {**taken, **given}, f"the method {kind.__name__}")

    def _general(self) -> dict[str, str | None]:
        """What is for whoever has such a setting; the method `dictionary` calls its dictionary its source."""
        purpose = self.purpose if self.purpose != "words" else None
        return {"layer": self.layer, "dictionary": self.dictionary, "source": self.dictionary, "purpose": purpose}

    def _check_taken(self, learners: Iterable[Learner]) -> None:
        """A setting that nobody heeds would be a silent mistake."""
        known = {name for learner in learners for name in _fields(type(learner))}
        known |= {"dictionary", "source"} if known & {"dictionary", "source"} else set()
        for name, value in self._general().items():
            if value is not None and name not in known:
                raise UsageError(f"The method {self.method} has no {name}, and {value!r} was given; leave it out.")


def _fields(kind: type[Learner]) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]


def parse_methods(text: str, known: Registry[Any] = LEARNERS) -> list[tuple[str, Spec]]:
    """`a,b:key=value,a:key=value` → (label of the result, method and its settings); labels are unique."""
    specs = parse_specs(text, known)
    for spec in specs:
        known[spec.name]
    names = [spec.name for spec in specs]
    if len({*map(str, specs)}) < len(specs):
        raise UsageError(f"The same method is given twice with the same settings in {text!r}.", code="given-twice")
    labels = [name if name not in names[:index] else f"{name}-{index + 1}" for index, name in enumerate(names)]
    return [*zip(labels, specs, strict=True)]
