"""Where a run was in the pass, in one file beside its output: a run that was killed goes on from there.

The file, `OUT.checkpoint`, is a safetensors file of all that the lesson holds between two batches, and of what decides
the result. It is written under another name, settled on the disk and renamed, so that one that is there is whole.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.encoding import BatchBudget
from stillvec.errors import FormatError, StillvecWarning, UsageError
from stillvec.files import digest, file_digest
from stillvec.formats.tensors import map_tensors, write_tensors
from stillvec.pipeline.corpus_counts import CorpusFacts
from stillvec.pipeline.manifest import describe_program
from stillvec.pipeline.settings import Distillation
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary

EVERY = 30.0  # seconds between checkpoints, at least,
_TIMES = 20  # and so many times what the last one took, for 5% of the time at most,
_LOST = 60.0  # but so that no more seconds of work can be lost, if one takes 15 or less
_FACTS = "facts"
_ADDED_LATER = ("weights",)  # facts that checkpoints of version 0.1 lack
_FREE = ("teacher", "device", "precision", "unsafe_weights", "remote_code")  # known better once the teacher is there

Arrays = dict[str, NDArray[Any]]


class PassCheckpoint:
    """Written now and then, read by a run with `--resume`, removed when the result is there."""

    def __init__(self, out: str | os.PathLike[str], *, resume: bool = False) -> None:
        self.out = Path(os.path.abspath(out))
        self.path = self.out.with_name(f"{self.out.name}.checkpoint")
        self.resume = resume
        self.warned = False
        self._wait = EVERY
        self._last = time.perf_counter()

    def check(self, facts: Mapping[str, object]) -> None:
        """Refuse to go on where something differs that decides the result."""
        if not self.resume or not self.path.exists():
            return
        kept = self._facts()
        compared = [key for key in facts if key in kept or key not in _ADDED_LATER]
        odd = next((key for key in compared if kept.get(key) != facts[key]), None)
        if odd is not None:
            raise UsageError(
                f"The run that {self.path} goes on from had the {odd} {_said(kept.get(odd))}, and {_said(facts[odd])} "
                "came; give what it had, or leave --resume out to begin anew."
            )

    def read(self, facts: Mapping[str, object]) -> Arrays | None:
        """What was written there, if it is to be gone on with."""
        if not self.resume or not self.path.exists():
            return None
        self.check(facts)
        self._sweep()
        return self._arrays()

    def _facts(self) -> dict[str, Any]:
        try:
            return dict(json.loads(bytes(self._arrays()[_FACTS])))
        except (ValueError, TypeError, RecursionError):
            raise self.unreadable() from None

    def unreadable(self) -> UsageError:
        return UsageError(f"{self.path} is no checkpoint that can be read; leave --resume out to begin anew.")

    def _arrays(self) -> Arrays:
        try:
            arrays = map_tensors(self.path)
        except (FormatError, OSError):
            arrays = {}
        if _FACTS not in arrays:
            raise self.unreadable()
        return arrays

    def due(self, *, finished: bool = False) -> bool:
        """Whether it is time for one; once the pass is over, sooner, since methods may take long to finish."""
        return time.perf_counter() - self._last >= (EVERY / 2 if finished else self._wait)

    def write(self, facts: Mapping[str, object], remember: Callable[[], Arrays]) -> None:
        """Whole or not at all; where there is no room the run goes on without, since its work is worth more."""
        begun = time.perf_counter()
        part = self.path.with_name(f".{self.path.name}.part")  # always the same: a killed run leaves one at most
        try:
            write_tensors(part, {**remember(), _FACTS: np.frombuffer(json.dumps(facts).encode(), np.uint8)})
            _settle(part)
            part.replace(self.path)
            _settle(self.path.parent)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            if not self.warned:
                told = f"A checkpoint could not be written to {self.path}: {error.strerror or error}; the run goes on."
                warnings.warn(told, StillvecWarning, stacklevel=2)
            self.warned = True
        self._last = time.perf_counter()
        took = self._last - begun  # what was done since it began is lost until the next is there
        self._wait = max(EVERY, min(_TIMES * took, _LOST - 2 * took))

    def remove(self) -> None:
        """The result is there."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
            self.path.with_name(f".{self.path.name}.part").unlink(missing_ok=True)

    def _sweep(self) -> None:
        """What the killed run had begun to write under its output's name."""
        for left in self.out.parent.glob(f".{self.out.name}.*.part"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)


def facts_of_settings(settings: Distillation, add_to: Path | None) -> dict[str, object]:
    """All that is known before the teacher is loaded."""
    given = {key: value for key, value in dataclasses.asdict(settings).items() if key not in _FREE}
    given["keep"] = digest(iter(["\n".join(settings.keep).encode()])) if settings.keep else None
    earlier = None if add_to is None else f"{add_to.name} ({file_digest(add_to / 'manifest.json')[:12]})"
    return {**given, "add_to": earlier}


def facts_of_reading(
    teacher: Teacher, budget: BatchBudget, corpus: CorpusFacts, vocabulary: Vocabulary
) -> dict[str, object]:
    """What decides the order and the numbers of the pass."""
    text = f"{corpus.n_words:,} words"
    if corpus.digest:
        text = f"of {text} in {corpus.n_paragraphs:,} paragraphs ({corpus.digest[:12]})"
    return {
        "teacher": f"{teacher.name} ({teacher.sampled_digest[:12]})",
        "weights": teacher.digest,
        "device": teacher.device.type,
        "precision": teacher.precision,
        "batch": f"of {budget.n_tokens:,} pieces out of {budget.n_sentences:,} sentences of a share",
        "corpus": text,
        "vocabulary": f"of {len(vocabulary):,} words ({vocabulary.digest[:12]})",
        "stillvec": describe_program()["stillvec"],
    }


def partial_bytes(arrays: Arrays) -> int:
    """Bytes that the run which is gone on with has already written to stores."""
    parts = [Path(bytes(array).decode(errors="replace")) for name, array in arrays.items() if name.endswith("/part")]
    return sum(file.stat().st_size for part in parts if part.is_dir() for file in part.iterdir())


def _said(value: object) -> str:
    return "none" if value is None else str(value)


def _settle(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
