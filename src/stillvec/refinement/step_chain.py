"""A chain of steps: read from text or from a manifest, run, and described so that it can be run on other vectors."""

from __future__ import annotations

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
    """After each step, its description for the manifest and the vectors, whose provenance has it under `refined`.

    A step that chooses others is replaced by those it chose; one that it tried and left out has `left_out`.
    """
    for given in steps:
        choose = getattr(given, "choose", None)
        for step, facts in choose(vectors) if choose else [(given, {})]:
            made = _described(step) | facts
            after = vectors if made.get("left_out") else step(vectors)
            if loss := getattr(step, "loss", None):
                made["loss"] = loss(vectors, after)
            if stored := getattr(step, "stored", None):
                made["stored"] = stored
            if not made.get("left_out"):
                history = after.provenance
                after = after.with_provenance({**history, "refined": [*history.get("refined", ()), made]})
            yield made, after
            vectors = after


def read_step(step: str | Step | Mapping[str, Any]) -> Step:
    """`NAME:key=value,...` as a step; a key that stands there twice has both values."""
    if isinstance(step, Mapping):
        return settings_from(STEPS[step.get("step", "")], step.get("settings", {}), f"step {step.get('step')}")
    if not isinstance(step, str):
        return step
    return create(STEPS, step)


def _described(step: Step) -> dict[str, Any]:
    """The name, the settings and the digests of the files they name."""
    name = next((name for name in STEPS if STEPS[name] is type(step)), type(step).__name__)
    settings = dataclasses.asdict(step)  # type: ignore[call-overload]
    lists = [each for value in settings.values() if isinstance(value, tuple) for each in value]
    files = [path for each in lists if isinstance(each, str) for path in (Path(each), Path(each.partition(":")[2]))]
    digests = {str(path): file_digest(path) for path in files if path.is_file()}
    return {"step": name, "settings": settings} | ({"files": digests} if digests else {})


def unknown_steps(text: str | None) -> list[Step]:
    """What gives words never seen a vector: `subword`, perhaps with settings; nothing without a text."""
    if text is None:
        return []
    if text.partition(":")[0] != "subword":
        raise UsageError.expected("'subword' or 'subword:key=value,...'", repr(text), where="oov")
    return [read_step(text)]
