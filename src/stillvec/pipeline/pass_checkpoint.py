"""The state of a pass in one file beside the output: a run that was killed continues from there.

`OUT.checkpoint` is a safetensors file of the `PassState` between two batches, and of the facts that decide the result.
It is written under a temporary name, synced and renamed, so that one that exists is complete.
"""

import json
import os
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
from stillvec.files import digest, digest_arrays, file_digest, place_beside, remove_abandoned, sync_path
from stillvec.formats.tensors import map_tensors, write_tensors
from stillvec.memory import release_pages
from stillvec.pipeline.corpus_counts import CorpusFacts
from stillvec.pipeline.result_folders import describe_program
from stillvec.pipeline.settings import OF_TEACHER, Distillation, to_manifest
from stillvec.teachers import Teacher
from stillvec.teachers.device import count_threads
from stillvec.training.checkpoint import warn_threads
from stillvec.vocabulary import Vocabulary

EVERY = 30.0  # seconds between checkpoints, at least
_TIMES = 33  # as long as the last one took: at most 3% of the time is spent on them
_FACTS = "facts"
_CHECKSUM = "checksum"  # a fact, of the arrays; checkpoints of version 0.1 lack it
_ADDED_LATER = ("weights",)  # facts that checkpoints of version 0.1 lack
_THREADS = "threads"  # a fact whose change is reported, not rejected

Arrays = dict[str, NDArray[Any]]


class PassCheckpoint:
    """Written from time to time, read by a run with `--resume`, removed when the result is written."""

    def __init__(self, out: str | os.PathLike[str], *, resume: bool = False) -> None:
        self.path = place_beside(out, "checkpoint")
        self.resume = resume
        self.warned = False
        self._wait = EVERY
        self._last = time.perf_counter()

    def check(self, facts: Mapping[str, object]) -> None:
        """Raise an error if something differs that decides the result."""
        if not self.resume or not self.path.exists():
            return
        earlier = self._facts()
        compared = [key for key in facts if key != _THREADS and (key in earlier or key not in _ADDED_LATER)]
        changed = next((key for key in compared if earlier.get(key) != facts[key]), None)
        if changed is not None:
            raise UsageError.expected(
                f"the {changed} of the stopped run, {_or_none(earlier.get(changed))}",
                _or_none(facts[changed]),
                path=self.path,
                cure="use the same setting, or leave out --resume to start over",
            )

    def read(self, facts: Mapping[str, object]) -> Arrays | None:
        """The arrays of the checkpoint, if the run is to continue from it."""
        if not self.resume or not self.path.exists():
            return None
        self.check(facts)
        earlier, arrays = self._facts(), self._arrays()
        state = {name: array for name, array in arrays.items() if name != _FACTS}
        if earlier.get(_CHECKSUM, checksum := _compute_checksum(state)) != checksum:
            raise self.unreadable()
        warn_threads(earlier.get(_THREADS), facts.get(_THREADS))
        return arrays

    def sweep(self) -> None:
        """Remove what the killed run had begun to write."""
        remove_abandoned(self.path.parent)

    def _facts(self) -> dict[str, Any]:
        try:
            return dict(json.loads(bytes(self._arrays()[_FACTS])))
        except (ValueError, TypeError, RecursionError):
            raise self.unreadable() from None

    def unreadable(self) -> UsageError:
        return UsageError(
            f"{self.path} is not a readable checkpoint; leave out --resume to start over.", path=self.path
        )

    def _arrays(self) -> Arrays:
        try:
            arrays = map_tensors(self.path)
        except (FormatError, OSError):
            arrays = {}
        if _FACTS not in arrays:
            raise self.unreadable()
        return arrays

    def start(self) -> None:
        """The pass begins: nothing is lost before."""
        self._last = time.perf_counter()

    def due(self, *, finished: bool = False) -> bool:
        """Whether it is time for one; sooner once the pass is finished, since methods may take long."""
        return time.perf_counter() - self._last >= (EVERY / 2 if finished else self._wait)

    def write(self, facts: Mapping[str, object], save_state: Callable[[], Arrays]) -> None:
        """Write it completely or not at all; without space on the disk the run continues without one."""
        start = time.perf_counter()
        part = self.path.with_name(f".{self.path.name}.part")  # always the same name: a killed run leaves at most one
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            state = save_state()
            text = json.dumps({**facts, _CHECKSUM: _compute_checksum(state)})
            write_tensors(part, {**state, _FACTS: np.frombuffer(text.encode(), np.uint8)})
            sync_path(part)
            part.replace(self.path)
            sync_path(self.path.parent)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            if not self.warned:
                message = f"Could not write the checkpoint {self.path}: {error.strerror or error}; the run continues."
                warnings.warn(message, StillvecWarning, stacklevel=2)
            self.warned = True
        self._last = time.perf_counter()
        self._wait = max(EVERY, _TIMES * (self._last - start))

    def remove(self) -> None:
        """Remove it: the result is written."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
            self.path.with_name(f".{self.path.name}.part").unlink(missing_ok=True)


def _compute_checksum(arrays: Arrays) -> str:
    """Of all arrays, of which one at a time is in memory if they are mapped."""
    checksums = []
    for name in sorted(arrays):
        checksums.append(digest_arrays({name: arrays[name]}).encode())
        release_pages(arrays[name])
    return digest(iter(checksums))


def facts_of_settings(settings: Distillation, add_to: Path | None) -> dict[str, object]:
    """What decides the result and is known before the teacher is loaded."""
    given = {key: value for key, value in to_manifest(settings).items() if key not in OF_TEACHER}
    words = settings.include_words
    given["keep"] = digest(iter(["\n".join(words).encode()])) if words else None
    earlier = None if add_to is None else f"{add_to.name} ({file_digest(add_to / 'manifest.json')[:12]})"
    return {**given, "add_to": earlier}


def facts_of_reading(
    teacher: Teacher, budget: BatchBudget, corpus: CorpusFacts, vocabulary: Vocabulary
) -> dict[str, object]:
    """What decides the order and the numbers of the pass; the wording is part of the checkpoint."""
    text = f"{corpus.n_words:,} words"
    if corpus.digest:
        text = f"of {text} in {corpus.n_paragraphs:,} paragraphs ({corpus.digest[:12]})"
    return {
        "teacher": f"{teacher.name} ({teacher.sampled_digest[:12]})",
        "weights": teacher.digest,
        "device": teacher.device.type,
        "precision": teacher.precision,
        _THREADS: count_threads(teacher.device),
        "batch": f"of {budget.n_tokens:,} pieces out of {budget.n_sentences:,} sentences of a share",
        "corpus": text,
        "vocabulary": f"of {len(vocabulary):,} words ({vocabulary.digest[:12]})",
        "stillvec": describe_program()["stillvec"],
    }


def partial_bytes(arrays: Arrays) -> int:
    """Bytes that the stopped run has already written to stores."""
    parts = [Path(os.fsdecode(bytes(array))) for name, array in arrays.items() if name.endswith("/part")]
    return sum(file.stat().st_size for part in parts if part.is_dir() for file in part.iterdir())


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)
