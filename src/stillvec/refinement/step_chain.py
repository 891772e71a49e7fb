"""Chains of steps: parsed from text or a manifest, applied, and described in the manifest for reuse."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stillvec.errors import UsageError
from stillvec.files import file_digest
from stillvec.refinement.steps import STEPS, Step
from stillvec.registry import create, settings_from
from stillvec.vectors import WordVectors


def refine_steps(vectors: WordVectors, steps: Sequence[Step]) -> Iterator[tuple[dict[str, Any], WordVectors]]:
    """Yield the description of each step and the vectors after it, whose provenance has the steps under `refined`.

    A step that chooses others is replaced by those; one that it tried and rejected has `left_out`.
    """
    for given in steps:
        choose = getattr(given, "choose", None)
        for step, facts in choose(vectors) if choose else [(given, {})]:
            record = _describe(step) | facts
            after = vectors if record.get("left_out") else step(vectors)
            if loss := getattr(step, "loss", None):
                record["loss"] = loss(vectors, after)
            if stored := getattr(step, "stored", None):
                record["stored"] = stored
            if not record.get("left_out"):
                history = after.provenance
                after = after.with_provenance({**history, "refined": [*history.get("refined", ()), record]})
            yield record, after
            vectors = after


def read_step(step: str | Step | Mapping[str, Any]) -> Step:
    """A step from `NAME:key=value,...` or its manifest entry; a repeated key collects its values."""
    if isinstance(step, Mapping):
        return settings_from(STEPS[step.get("step", "")], step.get("settings", {}), f"step {step.get('step')}")
    if not isinstance(step, str):
        return step
    return create(STEPS, step)


def _describe(step: Step) -> dict[str, Any]:
    """Name, settings, and digests of the files that the settings name."""
    name = next((name for name in STEPS if STEPS[name] is type(step)), type(step).__name__)
    settings = dataclasses.asdict(step)  # type: ignore[call-overload]
    items = [item for value in settings.values() if isinstance(value, tuple) for item in value if isinstance(item, str)]
    files = [path for item in items for path in (Path(item), Path(item.partition(":")[2]))]
    digests = {str(path): file_digest(path) for path in files if path.is_file()}
    return {"step": name, "settings": settings} | ({"files": digests} if digests else {})


def unknown_steps(text: str | None) -> list[Step]:
    """The steps for out-of-vocabulary words: `subword`, optionally with settings; none for None."""
    if text is None:
        return []
    if text.partition(":")[0] != "subword":
        raise UsageError.expected("'subword' or 'subword:key=value,...'", repr(text), where="oov")
    return [read_step(text)]
