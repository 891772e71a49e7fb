"""Contexts on disk: written once by a pass, then read by every training.

A store is a folder: `contexts.f16` (sentences, D), `states.f16` (words, D) where word states are stored, `words.i32`
(the words of all sentences, rows of the vocabulary, -1 if out of vocabulary), `lengths.i32` (words of each sentence)
and `store.json`. Numbers are float16 times `scale`, a power of two, since some teachers' states overflow float16. A
store is written under a temporary name and renamed when complete, so that one that exists is complete.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.errors import FormatError, StillvecError, TeacherError
from stillvec.files import create_part_folder, remove_abandoned
from stillvec.files.private_files import create_private_folder
from stillvec.files.temporary_names import CHECKPOINT_FILE, is_continued
from stillvec.progress import format_bytes

VERSION = 1
_FILES: dict[str, tuple[str, type]] = {name: (f"{name}.f16", np.float16) for name in ("contexts", "states")}
_FILES |= {name: (f"{name}.i32", np.int32) for name in ("words", "lengths")}
_MAX_SCALED = 1024.0  # of the first batch: far from float16's 65,504
_COPY_ROWS = 1 << 18  # at once
_MIN_FREE = 64 << 20  # bytes of a disk that stay free


@dataclass(frozen=True)
class StoreLocation:
    """Where stores are, and of which text: all that decides what a store holds, except teacher and layer."""

    folder: Path
    source: Mapping[str, object]
    n_words: int = 0  # about as many will be read
    n_sentences: int = 0
    checkpoint: Path | None = None  # of the run, which continues a partial store
    bytes_written: int = 0  # of a partial store that is continued
    shard: str | None = None  # where several processes write one store: the name of this part

    def path_for(self, facts: Mapping[str, object]) -> Path:
        """The folder of the store of this text and these facts."""
        text = json.dumps({"version": VERSION, **self.source, **facts}, sort_keys=True, default=str)
        return self.folder / hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True)
class Contexts:
    """An open store; arrays are memory-mapped, or in memory where no folder was given."""

    words: NDArray[np.int32]  # (T,)
    lengths: NDArray[np.int32]  # (S,)
    contexts: NDArray[np.float16]  # (S, D)
    states: NDArray[np.float16] | None = None  # (T, D)
    scale: float = 1.0
    path: Path | None = None

    @classmethod
    def open(cls, path: Path) -> Contexts:
        try:
            store = cls(**_read_store(path), path=path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise FormatError(
                f"{path} is not a context cache; remove it, and it will be written again.", path=path
            ) from None
        with suppress(OSError):  # it waits for no checkpoint any more; the run that completed it may have been killed
            (path / CHECKPOINT_FILE).unlink()
        return store


def shard_path(path: Path, name: str) -> Path:
    """One process's part of a store, until all parts are joined."""
    return path.with_name(f"{path.name}-{name}")


class ContextWriter:
    """Writes a store, batch by batch; `close` makes it appear, and an error before leaves nothing behind.

    Unless a checkpoint was written: a partial store then waits for the run to continue (`save_state`, `load_state`).
    """

    def __init__(self, path: Path | None, dim: int, *, states: bool, checkpoint: Path | None = None) -> None:
        self.path = path
        self.dim = dim
        self.checkpoint = checkpoint
        self.scale = 0.0
        self._names = ["contexts", "words", "lengths", *(["states"] if states else [])]
        self._arrays: dict[str, list[NDArray[Any]]] = {name: [] for name in self._names}
        self._part: Path | None = None
        self._streams: dict[str, BinaryIO] = {}
        if path is not None:
            remove_abandoned(create_private_folder(path.parent))
            self._part = create_part_folder(path)
            self._part.chmod(0o700)  # contexts tell what is in the corpus
            self._streams = {name: open(self._part / _FILES[name][0], "wb") for name in self._names}  # noqa: SIM115
        self._rows = dict.fromkeys(self._names, 0)

    def add(self, words: NDArray[Any], lengths: NDArray[Any], contexts: Tensor, states: Tensor | None = None) -> None:
        """Append sentences: their words, the number of words of each, their vectors, and the words' states."""
        if not len(lengths):
            return
        if not self.scale:
            self.scale = _scale([contexts] if states is None else [contexts, states])
        arrays = {"words": words.astype(np.int32), "lengths": lengths.astype(np.int32)}
        for name, tensor in (("contexts", contexts), ("states", states)):
            if name in self._arrays:
                assert tensor is not None
                arrays[name] = (tensor / self.scale).clamp(-65504, 65504).half().cpu().numpy()
        for name in self._names:
            self._rows[name] += len(arrays[name])
            if self._streams:
                self._write(name, arrays[name])
            else:
                self._arrays[name].append(arrays[name])

    def append(self, other: Contexts) -> None:
        """Append all of another store."""
        for name in self._names:
            rows = getattr(other, name)
            self._rows[name] += len(rows)
            for at in range(0, len(rows), _COPY_ROWS):
                self._write(name, _rescale(rows[at : at + _COPY_ROWS], other.scale / self.scale))

    def save_state(self) -> dict[str, NDArray[Any]]:
        """Flush what was written, and return how to continue from there."""
        rows = np.array([self._rows[name] for name in self._names])
        state = {"rows": rows, "scale": np.array(self.scale)}
        if self._part is None:
            return state | {f"held-{name}": np.concatenate(arrays) for name, arrays in self._arrays.items() if arrays}
        if self.checkpoint is not None:
            (self._part / CHECKPOINT_FILE).write_bytes(os.fsencode(self.checkpoint.absolute()))
        for stream in self._streams.values():
            stream.flush()
            os.fsync(stream.fileno())
        return state | {"part": np.frombuffer(os.fsencode(self._part.resolve()), np.uint8)}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from `save_state`; what was written after it is cut off."""
        self.scale = float(state["scale"])
        self._rows = dict(zip(self._names, state["rows"].tolist(), strict=True))
        in_memory = {name: state.get(f"held-{name}") for name in self._names}
        self._arrays = {name: [] if array is None else [np.array(array)] for name, array in in_memory.items()}
        if self._part is None or self.path is None:
            return
        self.abandon()
        part = Path(os.fsdecode(bytes(state["part"])))
        if part.parent != self.path.parent.resolve():
            raise StillvecError(f"The contexts of the stopped run are in {part.parent}; give it as --context-cache.")
        try:
            self._streams = {name: open(part / _FILES[name][0], "r+b") for name in self._names}  # noqa: SIM115
            for name, stream in self._streams.items():
                empty = self._empty(name)
                _truncate(stream, self._rows[name] * math.prod(empty.shape[1:]) * empty.itemsize)
        except (OSError, ValueError):
            raise StillvecError(
                f"The contexts of the stopped run, {part}, are gone; leave out --resume to start over."
            ) from None
        self._part = part

    def close(self) -> Contexts:
        if self._part is None or self.path is None:
            joined: dict[str, Any] = {
                name: np.concatenate(arrays) if arrays else self._empty(name) for name, arrays in self._arrays.items()
            }
            return Contexts(**joined, scale=self.scale or 1.0)
        with self._report_errors():
            for stream in self._streams.values():
                stream.flush()
                os.fsync(stream.fileno())
                stream.close()
        shapes = {name: [self._rows[name], *self._empty(name).shape[1:]] for name in self._names}
        facts = {"version": VERSION, "shapes": shapes, "scale": self.scale or 1.0}
        (self._part / "store.json").write_text(json.dumps(facts, indent=2) + "\n")
        try:
            self._part.rename(self.path)
        except OSError:
            if not self.path.is_dir():
                raise
            shutil.rmtree(self._part, ignore_errors=True)  # another run was faster: its store is the same
        self._part = None
        return Contexts.open(self.path)

    def abandon(self) -> None:
        """Leave nothing behind except what a checkpoint continues from."""
        for stream in self._streams.values():
            with suppress(OSError):  # a full disk cannot take what is buffered
                stream.close()
        if self._part is not None and not is_continued(self._part):
            shutil.rmtree(self._part, ignore_errors=True)
        self._part = None
        self._streams = {}

    def _write(self, name: str, array: NDArray[Any]) -> None:
        with self._report_errors():
            self._streams[name].write(np.ascontiguousarray(array).data)

    @contextmanager
    def _report_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            cure = "nothing partial was left behind. Give another folder with --context-cache."
            if self._part is not None and is_continued(self._part):
                cure = "with more space there, --resume continues from the last checkpoint."
            self.abandon()
            assert self.path is not None
            reason = f"Could not store contexts in {self.path.parent}: {error.strerror or error}"
            raise StillvecError(f"{reason}; {cure}") from None

    def _empty(self, name: str) -> NDArray[Any]:
        return np.zeros((0, self.dim) if name in ("contexts", "states") else 0, _FILES[name][1])


def join_stores(path: Path, shards: Sequence[Path]) -> Contexts:
    """Concatenate shards to one store, in the scale of the first that is not empty, and remove them."""
    missing = next((shard for shard in shards if not shard.exists()), None)
    if missing is not None:
        raise StillvecError(
            f"Not all processes stored their contexts in {path.parent}: {missing.name} does not exist; give a folder "
            "that all machines share with --context-cache."
        )
    parts = [Contexts.open(shard) for shard in shards]
    filled = [part for part in parts if len(part.lengths)]
    states = parts[0].states is not None
    writer = ContextWriter(path, parts[0].contexts.shape[1], states=states)
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


def _rescale(rows: NDArray[Any], factor: float) -> NDArray[Any]:
    """float16 in another scale; both are powers of two, so that numbers within range do not change."""
    if factor == 1 or rows.dtype != np.float16:
        return rows
    return (rows.astype(np.float32) * factor).clip(-65504, 65504).astype(np.float16)


def bytes_needed(n_words: int, n_sentences: int, dim: int, *, states: bool) -> int:
    """The size of a store."""
    return 4 * (n_words + n_sentences) + 2 * dim * (n_sentences + (n_words if states else 0))


def check_room(folder: Path, needed: int) -> None:
    """Raise an error before the work if the disk would not have enough space."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        reason = "read-only" if existing.is_dir() else "a file"
        raise StillvecError(
            f"Contexts cannot be stored in {folder}: {existing} is {reason}; give another --context-cache."
        )
    free = shutil.disk_usage(existing).free
    if needed + _MIN_FREE > free:
        raise StillvecError(
            f"The contexts need about {format_bytes(needed)} in {folder}, which has {format_bytes(free)} free, of "
            f"which {format_bytes(_MIN_FREE)} stay unused; give another folder with --context-cache, fewer --contexts, "
            "or train in the stream (stream=true)."
        )


def _read_store(path: Path) -> dict[str, Any]:
    """The arrays of a store and their scale; raises all kinds of errors if it is none."""
    facts = json.loads((path / "store.json").read_bytes())
    arrays = {name: _map_file(path, name, tuple(map(int, shape))) for name, shape in facts["shapes"].items()}
    sizes = {name: len(array) for name, array in arrays.items()}
    if sizes["contexts"] != sizes["lengths"] or not sizes["words"] == sizes.get("states", sizes["words"]):
        raise ValueError("contexts and sentences, or states and words, differ in number")
    if int(arrays["lengths"].sum(dtype=np.int64)) != sizes["words"] or (arrays["lengths"] < 0).any():
        raise ValueError("lengths of sentences do not sum to the number of words")
    return {**arrays, "scale": float(facts["scale"])}


def _map_file(path: Path, name: str, shape: tuple[int, ...]) -> Any:
    file, kind = path / _FILES[name][0], _FILES[name][1]
    size = file.stat().st_size if file.exists() else 0
    expected = math.prod(shape) * np.dtype(kind).itemsize
    if size != expected:
        cure = f"remove {path}; it will be written again"
        raise FormatError.expected(f"{expected:,} bytes", f"{size:,}", path=file, cure=cure)
    return np.memmap(file, kind, "r", shape=shape) if expected else np.zeros(shape, kind)


def _scale(tensors: list[Tensor]) -> float:
    largest = float(torch.stack([tensor.abs().max() for tensor in tensors]).max())  # NaN, where one is
    if not math.isfinite(largest):
        raise TeacherError("The teacher's states overflow or are not numbers; try another --precision.")
    return 2.0 ** max(0, math.ceil(math.log2(max(largest, 1e-30) / _MAX_SCALED)))


def _truncate(stream: BinaryIO, size: int) -> None:
    """Truncate to the first `size` bytes; ValueError if there are fewer."""
    if stream.seek(0, os.SEEK_END) < size:
        raise ValueError(size)
    stream.truncate(size)
    stream.seek(size)
