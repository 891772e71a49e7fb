"""Contexts on disk: what the teacher said is written once, and whoever trains reads it again and again.

A store is a folder: `contexts.f16` (sentences, D), `states.f16` (words, D) where word states are kept, `words.i32` (the
words of all sentences, rows of the vocabulary, -1 for one it does not have), `lengths.i32` (words of each sentence) and
`store.json`. Numbers are halves times `scale`, a power of two, since some teachers' states are too large for halves. It
is written under another name and renamed when whole, so that a store that is there is a whole one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.errors import FormatError, StillvecError, TeacherError
from stillvec.files import create_part_folder

VERSION = 1
_FILES = {
    "contexts": ("contexts.f16", np.float16),
    "states": ("states.f16", np.float16),
    "words": ("words.i32", np.int32),
    "lengths": ("lengths.i32", np.int32),
}
_LARGEST = 1024.0  # what the first batch is scaled to at most: far from a half's 65,504
_HOLDER = "checkpoint"  # a file in half a store, with the path of the checkpoint that goes on from it
_AT_ONCE = 1 << 18  # rows that are copied
_SPARE = 64 << 20  # bytes of a disk that are left alone


@dataclass(frozen=True)
class StoreLocation:
    """Where stores lie, and the text they are of: all that decides what a store holds, but for teacher and layer."""

    folder: Path
    source: Mapping[str, object]
    n_words: int = 0  # about as many will be read
    n_sentences: int = 0
    checkpoint: Path | None = None  # of the run, which half a store waits for
    bytes_written: int = 0  # of a partial store that is continued
    shard: str | None = None  # where several write one store: the name of this part of it

    def path_for(self, facts: Mapping[str, object]) -> Path:
        """The store of this text and these facts, by name."""
        text = json.dumps({"version": VERSION, **self.source, **facts}, sort_keys=True, default=str)
        return self.folder / hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True)
class Contexts:
    """A store that is open; arrays are memory-mapped, or in memory where there was no folder for them."""

    words: NDArray[np.int32]  # (T,)
    lengths: NDArray[np.int32]  # (S,)
    contexts: NDArray[np.float16]  # (S, D)
    states: NDArray[np.float16] | None = None  # (T, D)
    scale: float = 1.0
    path: Path | None = None

    @classmethod
    def open(cls, path: Path) -> Contexts:
        try:
            return cls(**_held(path), path=path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise FormatError(f"{path} is not a store of contexts; remove it, and it is written anew.") from None


def shard_path(place: Path, name: str) -> Path:
    """A store on its own until it is joined with the others; its name says all that decides what is in it."""
    return place.with_name(f"{place.name}-{name}")


class ContextWriter:
    """Writes a store, batch by batch; `close` makes it appear, and whatever goes wrong before leaves nothing.

    Unless a checkpoint was written: half a store then waits for the run to go on (`remember`, `recall`).
    """

    def __init__(self, place: Path | None, dim: int, *, states: bool, checkpoint: Path | None = None) -> None:
        self.place = place
        self.dim = dim
        self.checkpoint = checkpoint
        self.scale = 0.0
        self._names = ["contexts", "words", "lengths", *(["states"] if states else [])]
        self._kept: dict[str, list[NDArray[Any]]] = {name: [] for name in self._names}
        self._part: Path | None = None
        self._streams: dict[str, BinaryIO] = {}
        if place is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            _sweep(place.parent)
            self._part = create_part_folder(place.with_name(f"{place.name}.{_here()}.{os.getpid()}"))
            self._streams = {name: open(self._part / _FILES[name][0], "wb") for name in self._names}  # noqa: SIM115
        self._rows = dict.fromkeys(self._names, 0)

    def add(self, words: NDArray[Any], lengths: NDArray[Any], contexts: Tensor, states: Tensor | None = None) -> None:
        """Sentences one after the other: their words, how many each has, their vectors, and the words' states."""
        if not len(lengths):
            return
        if not self.scale:
            self.scale = _scale([contexts] if states is None else [contexts, states])
        arrays = {"words": words.astype(np.int32), "lengths": lengths.astype(np.int32)}
        for name, tensor in (("contexts", contexts), ("states", states)):
            if name in self._kept:
                assert tensor is not None
                arrays[name] = (tensor / self.scale).clamp(-65504, 65504).half().cpu().numpy()
        for name in self._names:
            self._rows[name] += len(arrays[name])
            if self._streams:
                self._write(self._streams[name], arrays[name])
            else:
                self._kept[name].append(arrays[name])

    def append(self, part: Contexts) -> None:
        """All of another store, as it lies."""
        for name in self._names:
            rows = getattr(part, name)
            self._rows[name] += len(rows)
            for at in range(0, len(rows), _AT_ONCE):
                self._write(self._streams[name], _rescaled(rows[at : at + _AT_ONCE], part.scale / self.scale))

    def save_state(self) -> dict[str, NDArray[Any]]:
        """Settle what was written, and say how to go on from there."""
        rows = np.array([self._rows[name] for name in self._names])
        kept = {"rows": rows, "scale": np.array(self.scale)}
        if self._part is None:
            return kept | {f"held-{name}": np.concatenate(held) for name, held in self._kept.items() if held}
        if self.checkpoint is not None:
            (self._part / _HOLDER).write_text(str(self.checkpoint.absolute()), "utf-8")
        for stream in self._streams.values():
            stream.flush()
            os.fsync(stream.fileno())
        return kept | {"part": np.frombuffer(str(self._part.resolve()).encode(), np.uint8)}

    def load_state(self, kept: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `remember` said; what was written after it is cut off."""
        self.scale = float(kept["scale"])
        self._rows = dict(zip(self._names, kept["rows"].tolist(), strict=True))
        self._kept = {name: [np.array(kept[f"held-{name}"])] for name in self._names if f"held-{name}" in kept}
        self._kept |= {name: [] for name in self._names if name not in self._kept}
        if self._part is None or self.place is None:
            return
        self.abandon()
        part = Path(bytes(kept["part"]).decode())
        if part.parent != self.place.parent.resolve():
            raise StillvecError(f"The contexts of the run that was stopped lie in {part.parent}; give it as --store.")
        try:
            self._streams = {name: open(part / _FILES[name][0], "r+b") for name in self._names}  # noqa: SIM115
            for name, stream in self._streams.items():
                _cut(stream, self._rows[name] * math.prod(self._none(name).shape[1:]) * self._none(name).itemsize)
        except (OSError, ValueError):
            raise StillvecError(
                f"The contexts of the run that was stopped, {part}, are gone; leave --resume out to begin anew."
            ) from None
        self._part = part

    def close(self) -> Contexts:
        if self._part is None or self.place is None:
            joined: dict[str, Any] = {
                name: np.concatenate(kept) if kept else self._none(name) for name, kept in self._kept.items()
            }
            return Contexts(**joined, scale=self.scale or 1.0)
        for stream in self._streams.values():
            self._settle(stream)
        shapes = {name: [self._rows[name], *self._none(name).shape[1:]] for name in self._names}
        facts = {"version": VERSION, "shapes": shapes, "scale": self.scale or 1.0}
        (self._part / "store.json").write_text(json.dumps(facts, indent=2) + "\n")
        try:
            self._part.rename(self.place)
        except OSError:
            if not self.place.is_dir():
                raise
            shutil.rmtree(self._part, ignore_errors=True)  # another run was quicker: its store is as good
        (self.place / _HOLDER).unlink(missing_ok=True)
        self._part = None
        return Contexts.open(self.place)

    def abandon(self) -> None:
        """Leave nothing, but for what a checkpoint goes on from."""
        for stream in self._streams.values():
            with suppress(OSError):  # what it still holds has no room
                stream.close()
        if self._part is not None and not _is_held(self._part):
            shutil.rmtree(self._part, ignore_errors=True)
        self._part = None
        self._streams = {}

    def _write(self, stream: BinaryIO, array: NDArray[Any]) -> None:
        try:
            stream.write(np.ascontiguousarray(array).data)
        except OSError as error:
            raise self._failed(error) from None

    def _settle(self, stream: BinaryIO) -> None:
        try:
            stream.flush()
            os.fsync(stream.fileno())
            stream.close()
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> StillvecError:
        held = self._part is not None and _is_held(self._part)
        self.abandon()
        assert self.place is not None
        left = "nothing half-written was left. Give another folder with --store."
        if held:
            left = "with more room there, --resume goes on from the last checkpoint."
        return StillvecError(
            f"The contexts could not be kept in {self.place.parent}: {error.strerror or error}; {left}"
        )

    def _none(self, name: str) -> NDArray[Any]:
        return np.zeros((0, self.dim) if name in ("contexts", "states") else 0, _FILES[name][1])


def join_stores(place: Path, shards: Sequence[Path]) -> Contexts:
    """Shards, laid end to end, as one store, in the numbers of the first that has any; they are removed."""
    lacking = next((shard for shard in shards if not shard.exists()), None)
    if lacking is not None:
        raise StillvecError(
            f"Not all processes kept their contexts in {place.parent}: {lacking.name} is not there; give a folder that "
            "all machines share with --store."
        )
    parts = [Contexts.open(shard) for shard in shards]
    filled = [part for part in parts if len(part.lengths)]
    states = parts[0].states is not None
    writer = ContextWriter(place, parts[0].contexts.shape[1], states=states)
    try:
        writer.scale = filled[0].scale if filled else 0.0
        for part in filled:
            writer.append(part)
        whole = writer.close()
    except BaseException:
        writer.abandon()
        raise
    for shard in shards:
        shutil.rmtree(shard, ignore_errors=True)
    return whole


def _rescaled(rows: NDArray[Any], times: float) -> NDArray[Any]:
    """Halves in another scale; both are powers of two, so what is not too small or large stays the same number."""
    if times == 1 or rows.dtype != np.float16:
        return rows
    return (rows.astype(np.float32) * times).clip(-65504, 65504).astype(np.float16)


def bytes_needed(words: int, sentences: int, dim: int, *, states: bool) -> int:
    """The size of a store."""
    return 4 * (words + sentences) + 2 * dim * (sentences + (words if states else 0))


def format_bytes(count: int) -> str:
    """Bytes in words."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def check_room(folder: Path, needed: int) -> None:
    """Refuse before the work what would fill the disk."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise StillvecError(
            f"No contexts can be kept in {folder}, since {there} is {_lacks(there)}; give another --store."
        )
    free = shutil.disk_usage(there).free
    if needed + _SPARE > free:
        raise StillvecError(
            f"The contexts need about {format_bytes(needed)} in {folder}, and {format_bytes(free)} are free; give "
            "another folder with --store, fewer --contexts, or train in the stream (stream=true)."
        )


def _lacks(place: Path) -> str:
    return "read-only" if place.is_dir() else "a file"


def _held(path: Path) -> dict[str, Any]:
    """The arrays of a store and their scale; all kinds of errors where it is none."""
    facts = json.loads((path / "store.json").read_bytes())
    arrays = {name: _mapped(path, name, tuple(map(int, shape))) for name, shape in facts["shapes"].items()}
    sizes = {name: len(array) for name, array in arrays.items()}
    if sizes["contexts"] != sizes["lengths"] or not sizes["words"] == sizes.get("states", sizes["words"]):
        raise ValueError("not as many contexts as sentences, or states as words")
    if int(arrays["lengths"].sum(dtype=np.int64)) != sizes["words"] or (arrays["lengths"] < 0).any():
        raise ValueError("other sentences than words")
    return {**arrays, "scale": float(facts["scale"])}


def _mapped(path: Path, name: str, shape: tuple[int, ...]) -> Any:
    file, kind = path / _FILES[name][0], _FILES[name][1]
    there = file.stat().st_size if file.exists() else 0
    wanted = math.prod(shape) * np.dtype(kind).itemsize
    if there != wanted:
        raise FormatError(f"{file} has {there:,} of {wanted:,} bytes; remove {path}, and it is written anew.")
    return np.memmap(file, kind, "r", shape=shape) if wanted else np.zeros(shape, kind)


def _scale(tensors: list[Tensor]) -> float:
    largest = float(torch.stack([each.abs().max() for each in tensors]).max())  # NaN, where one is
    if not math.isfinite(largest):
        raise TeacherError("The teacher's states are too large for its numbers, or none; try another --precision.")
    return 2.0 ** max(0, math.ceil(math.log2(max(largest, 1e-30) / _LARGEST)))


def _cut(stream: BinaryIO, size: int) -> None:
    """To its first bytes; ValueError where it has fewer."""
    if stream.seek(0, os.SEEK_END) < size:
        raise ValueError(size)
    stream.truncate(size)
    stream.seek(size)


def _is_held(part: Path) -> bool:
    """Whether there is a checkpoint that goes on from this half of a store."""
    try:
        return Path((part / _HOLDER).read_text("utf-8")).exists()
    except OSError:
        return False


def _here() -> str:
    """This machine: a folder of stores may be shared by several, whose processes have the same numbers."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def _sweep(folder: Path) -> None:
    """Remove what runs of this machine left there when they were killed."""
    for part in folder.glob(f".*.{_here()}.*.part"):
        owner = part.name.split(".")[3]
        if part.is_dir() and not (owner.isdigit() and _lives(int(owner))) and not _is_held(part):
            shutil.rmtree(part, ignore_errors=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is someone else's
        return True
    return True
