"""The processes that torchrun started, one a device: what each knows of the others, and how they talk.

They talk over gloo, in plain bytes: what is exchanged is counts and statistics, which lie in the machine's memory, and
nothing that comes from another process is ever unpickled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from stillvec.errors import StillvecError, UsageError

Arrays = dict[str, NDArray[Any]]
_PIECE = 1 << 28  # bytes of a message
_PATIENCE = timedelta(days=14)  # others may count or read for long; one that has ended is noticed at once


class ProcessGroup:
    """All processes of a run; `number` is ours, 0 writes and speaks."""

    def __init__(self) -> None:
        self.number, self.of = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # on this machine
        self._store = self._talking(self._begin)

    @classmethod
    def started(cls) -> bool:
        """Whether torchrun started several of us."""
        return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1

    def _begin(self) -> Any:
        dist.init_process_group("gloo", timeout=_PATIENCE)
        return dist.distributed_c10d._get_default_store()

    def take_device(self, device: str) -> None:
        """See one GPU, ours, if there are any; to be called before anything of CUDA is."""
        count = torch.cuda.device_count() if device != "cpu" else 0
        place = int(os.environ.get("LOCAL_RANK", "0"))
        if not count:
            return
        if place >= count:
            raise UsageError(
                f"torchrun started {self.here} processes on a machine that has {count} GPUs; give --nproc-per-node "
                f"{count}, or --device cpu."
            )
        seen = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ["CUDA_VISIBLE_DEVICES"] = str(place) if seen is None else seen.split(",")[place]

    def added(self, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
        """The sums over all, for all; integers, so whatever the order."""
        sums = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        for tensor in sums.values():
            self._talking(dist.all_reduce, tensor)
        return {name: tensor.numpy() for name, tensor in sums.items()}

    def merged(self, mine: Arrays, merge: Callable[[Arrays, Arrays], Arrays]) -> Arrays | None:
        """All of it in the first process, merged in a tree of neighbours; None in the others."""
        step = 1
        while step < self.of:
            if self.number % (2 * step):
                self._send(mine, self.number - step)
                return None
            if self.number + step < self.of:
                mine = merge(mine, self._receive(self.number + step))
            step *= 2
        return mine

    def told(self, what: Any) -> Any:
        """What the first process says (plain data), in all of them."""
        text = np.frombuffer(json.dumps(what).encode(), np.uint8) if not self.number else np.zeros(0, np.uint8)
        size = self.added({"size": np.array([len(text)])})["size"]
        data = torch.from_numpy(np.resize(text, int(size[0])))
        self._talking(dist.broadcast, data, 0)
        return json.loads(data.numpy().tobytes())

    def wait(self) -> None:
        """Until all are here."""
        self._talking(dist.barrier)

    def fails_first(self) -> bool:
        """Whether nobody else has failed: one sentence is enough."""
        try:
            return bool(self._store.add("stillvec-failed", 1) == 1)
        except (RuntimeError, ValueError):
            return self.number == 0

    def end(self) -> None:
        dist.destroy_process_group()

    def _send(self, arrays: Arrays, to: int) -> None:
        head = json.dumps([[name, array.dtype.str, array.shape] for name, array in arrays.items()]).encode()
        for data in (np.array([len(head)]), np.frombuffer(head, np.uint8), *arrays.values()):
            for piece in _pieces(np.ascontiguousarray(data).reshape(-1).view(np.uint8)):
                self._talking(dist.send, piece, to)

    def _receive(self, source: int) -> Arrays:
        size = self._bytes(8, source).view(np.int64)
        head = json.loads(self._bytes(int(size[0]), source).tobytes())
        found: Arrays = {}
        for name, kind, shape in head:
            raw = self._bytes(int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize, source)
            found[name] = raw.view(kind).reshape(shape)
        return found

    def _bytes(self, count: int, source: int) -> NDArray[np.uint8]:
        raw = np.zeros(count, np.uint8)
        for piece in _pieces(raw):
            self._talking(dist.recv, piece, source)
        return raw

    def _talking(self, what: Callable[..., Any], *given: Any) -> Any:
        try:
            return what(*given)
        except (RuntimeError, ValueError):
            raise StillvecError(
                f"Process {self.number} of {self.of} cannot reach the others: one of them has ended; what it said, or "
                "the log of its machine, tells why."
            ) from None


def _pieces(raw: NDArray[np.uint8]) -> Iterator[torch.Tensor]:
    """Bytes as tensors over the same memory, none too large for one message."""
    raw = raw if raw.flags.writeable else raw.copy()
    return (torch.from_numpy(raw[at : at + _PIECE]) for at in range(0, len(raw), _PIECE))
