"""The registry of refinement steps, and chains of steps: parsed from text or a manifest, applied, and described."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.files import file_digest
from stillvec.numerics import iterate_blocks, top_k, unit_rows
from stillvec.registry import Registry, create, settings_from
from stillvec.vectors import WordVectors

_SAMPLE = 4096  # words among which neighbours are compared
_QUERIES = 512
_NEIGHBOURS = 10


class Step(Protocol):
    """Vectors in, new vectors out."""

    def __call__(self, vectors: WordVectors, /) -> WordVectors: ...


@runtime_checkable
class ChoosesSteps(Protocol):
    """A step that is replaced by others, which it chooses by the vectors."""

    def choose(self, vectors: WordVectors) -> Iterable[tuple[Step, dict[str, Any]]]:
        """Each step with facts for the manifest; one with `left_out` is not applied."""


@runtime_checkable
class ReportsLoss(Protocol):
    """A step that says how much it lost."""

    def loss(self, before: WordVectors, after: WordVectors) -> dict[str, float]: ...


@runtime_checkable
class HasPacking(Protocol):
    """A step after which folders are stored in a packing."""

    @property
    def stored(self) -> str | None: ...


STEPS: Registry[type[Step]] = Registry(
    "step",
    {
        "all_but_the_top": "stillvec.refinement.all_but_the_top:AllButTheTop",
        "attributes": "stillvec.refinement.lexicon_attributes:LexiconAttributes",
        "auto": "stillvec.refinement.auto_steps:AutoSteps",
        "bits": "stillvec.refinement.bits:Bits",
        "center": "stillvec.refinement.center:Center",
        "feature_tuples": "stillvec.refinement.feature_tuples:FeatureTuples",
        "graph_retrofit": "stillvec.refinement.graph_retrofit:GraphRetrofit",
        "natural_alpha": "stillvec.refinement.natural_alpha:NaturalAlpha",
        "normalize": "stillvec.refinement.normalize:Normalize",
        "pca": "stillvec.refinement.pca:Pca",
        "prune": "stillvec.refinement.prune:Prune",
        "quantize": "stillvec.refinement.quantize:Quantize",
        "retrofit": "stillvec.refinement.retrofit:Retrofit",
        "select_dims": "stillvec.refinement.select_dims:SelectDims",
        "separate_inflections": "stillvec.refinement.separate_inflections:SeparateInflections",
        "shrink": "stillvec.refinement.shrink:Shrink",
        "sif": "stillvec.refinement.sif:Sif",
        "similarity_order": "stillvec.refinement.similarity_order:SimilarityOrder",
        "subword": "stillvec.refinement.subword:Subword",
        "text_pairs": "stillvec.refinement.text_pairs:TextPairs",
        "whiten": "stillvec.refinement.whiten:Whiten",
    },
    renamed={"alpha": "natural_alpha", "dimensions": "select_dims", "unit": "normalize", "weight": "sif"},
)


def refine_steps(vectors: WordVectors, steps: Sequence[Step]) -> Iterator[tuple[dict[str, Any], WordVectors]]:
    """Yield the description of each step and the vectors after it, whose provenance has the steps under `refined`.

    A step that chooses others is replaced by those; one that it tried and rejected has `left_out`.
    """
    for given in steps:
        for step, facts in given.choose(vectors) if isinstance(given, ChoosesSteps) else [(given, {})]:
            record = describe_step(step) | facts
            after = vectors if record.get("left_out") else step(vectors)
            if isinstance(step, ReportsLoss):
                record["loss"] = step.loss(vectors, after)
            if isinstance(step, HasPacking) and step.stored:
                record["stored"] = step.stored
            if not record.get("left_out"):
                history = after.provenance
                after = after.with_provenance({**history, "refined": [*(history.get("refined") or ()), record]})
            yield record, after
            vectors = after


def read_step(step: str | Step | Mapping[str, Any]) -> Step:
    """A step from `NAME:key=value,...` or its manifest entry; a repeated key collects its values."""
    if isinstance(step, Mapping):
        if not isinstance(step.get("step", ""), str) or not isinstance(step.get("settings", {}), Mapping):
            raise UsageError.expected("the name of a step and its settings", repr(step)[:80], where="manifest")
        return settings_from(STEPS[step.get("step", "")], step.get("settings", {}), f"step {step.get('step')}")
    if isinstance(step, str):
        return create(STEPS, step)
    given: object = step
    if not dataclasses.is_dataclass(given):
        raise UsageError.expected("the name of a step, or an object of its class", repr(given)[:80], where="refine")
    return step


def describe_step(step: Step) -> dict[str, Any]:
    """Name, settings, and digests of the files that the settings name."""
    name = STEPS.name_of(step)
    settings = dataclasses.asdict(step)  # type: ignore[call-overload]
    items = [item for value in settings.values() if isinstance(value, tuple) for item in value if isinstance(item, str)]
    files = [path for item in items for path in (Path(item), Path(item.partition(":")[2]))]
    digests = {str(path): file_digest(path) for path in files if path.is_file()}
    return {"step": name, "settings": settings} | ({"files": digests} if digests else {})


def unknown_steps(text: str | None) -> list[Step]:
    """The steps for out-of-vocabulary words: `subword` or `attributes`, optionally with settings; none for None."""
    if text is None:
        return []
    name = text.partition(":")[0]
    if name not in ("subword", "attributes"):
        what = "'subword' or 'attributes', alone or as in 'subword:key=value,...'"
        raise UsageError.expected(what, repr(text), where="oov")
    step = read_step(text)
    return [step if name == "subword" else dataclasses.replace(step, extend=True, weight=0.0)]  # type: ignore[type-var]


def measure_loss(before: WordVectors, after: WordVectors) -> dict[str, float]:
    """Mean cosine of rows before and after, over non-zero rows, and the share of the squared norm that is lost."""
    cosines, rows, lost, whole = 0.0, 0, 0.0, 0.0
    for (_, old), (_, new) in zip(iterate_blocks(before.matrix), iterate_blocks(after.matrix), strict=True):
        squares = (old * old).sum(1)
        lengths = np.sqrt(squares * (new * new).sum(1))
        dots = np.divide((old * new).sum(1), lengths, out=np.zeros(len(old)), where=lengths > 0)
        cosines, rows = cosines + float(dots.sum()), rows + int((squares > 0).sum())
        lost, whole = lost + float(((old - new) ** 2).sum()), whole + float(squares.sum())
    return {"mean cosine": cosines / max(rows, 1), "lost squares": lost / whole if whole else 0.0}


def measure_neighbours(before: WordVectors, after: WordVectors) -> dict[str, float]:
    """The share of the ten nearest neighbours that is kept, among a sample of words."""
    rows = slice(None, None, max(1, len(before) // _SAMPLE))
    old, new = (_find_neighbours(np.asarray(space.matrix[rows], np.float32)) for space in (before, after))
    shares = [len({*a} & {*b}) / max(len(a), 1) for a, b in zip(old.tolist(), new.tolist(), strict=True)]
    return {"neighbours kept": float(np.mean(shares)) if shares else 1.0}


def _find_neighbours(sample: NDArray[np.float32]) -> NDArray[np.int64]:
    units = unit_rows(sample)
    rows = np.arange(0, len(units), max(1, len(units) // _QUERIES))
    cosines = units[rows] @ units.T
    cosines[np.arange(len(rows)), rows] = -np.inf
    return top_k(cosines, _NEIGHBOURS)
