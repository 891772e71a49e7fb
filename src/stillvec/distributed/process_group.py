"""The processes that torchrun started, one per device, and the collective operations between them.

They communicate over gloo, in plain bytes: counts and statistics, which are in the machine's memory. Nothing that comes
from another process is unpickled.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from stillvec.errors import StillvecError, UsageError

Arrays = dict[str, NDArray[Any]]
_MESSAGE_BYTES = 1 << 28  # at most
_TIMEOUT = timedelta(days=14)  # others may count or read for long; one that has ended is noticed at once


class ProcessGroup:
    """All processes of a run; the one of rank 0 prints and writes."""

    def __init__(self) -> None:
        self.rank, self.world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.local_world_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # on this machine
        self._store = self._communicate(self._join)

    def _join(self) -> Any:
        dist.init_process_group("gloo", timeout=_TIMEOUT)
        return dist.distributed_c10d._get_default_store()  # private; read in torch 2.4 to 2.9

    def select_device(self, device: str) -> None:
        """Make only this process's GPU visible, if there are any; to be called before anything uses CUDA."""
        n_gpus = torch.cuda.device_count() if device != "cpu" else 0
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        if not n_gpus:
            return
        if local_rank >= n_gpus:
            raise UsageError(
                f"torchrun started {self.local_world_size} processes on a machine with {n_gpus} GPUs; give "
                f"--nproc-per-node {n_gpus}, or --device cpu."
            )
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ["CUDA_VISIBLE_DEVICES"] = str(local_rank) if visible is None else visible.split(",")[local_rank]

    def all_reduce(self, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
        """The sums over all processes, in all of them; of integers, so that the order does not matter."""
        sums = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        for tensor in sums.values():
            self._communicate(dist.all_reduce, tensor)
        return {name: tensor.numpy() for name, tensor in sums.items()}

    def tree_reduce(self, own: Arrays, merge: Callable[[Arrays, Arrays], Arrays]) -> Arrays | None:
        """The arrays of all processes in the first one, merged in a tree of neighbours; None in the others."""
        step = 1
        while step < self.world_size:
            if self.rank % (2 * step):
                self._send(own, self.rank - step)
                return None
            if self.rank + step < self.world_size:
                own = merge(own, self._receive(self.rank + step))
            step *= 2
        return own

    def broadcast(self, message: Any) -> Any:
        """The first process's message (plain data), in all of them."""
        text = np.frombuffer(json.dumps(message).encode(), np.uint8) if not self.rank else np.zeros(0, np.uint8)
        size = self.all_reduce({"size": np.array([len(text)])})["size"]
        data = torch.from_numpy(np.resize(text, int(size[0])))
        self._communicate(dist.broadcast, data, 0)
        return json.loads(data.numpy().tobytes())

    def barrier(self) -> None:
        """Wait for all processes."""
        self._communicate(dist.barrier)

    def fails_first(self) -> bool:
        """Whether no other process has failed before: one message is enough."""
        try:
            return bool(self._store.add("stillvec-failed", 1) == 1)
        except (RuntimeError, ValueError):
            return self.rank == 0

    def close(self) -> None:
        dist.destroy_process_group()

    def _send(self, arrays: Arrays, to: int) -> None:
        head = json.dumps([[name, array.dtype.str, array.shape] for name, array in arrays.items()]).encode()
        for data in (np.array([len(head)]), np.frombuffer(head, np.uint8), *arrays.values()):
            for message in _messages(np.ascontiguousarray(data).reshape(-1).view(np.uint8)):
                self._communicate(dist.send, message, to)

    def _receive(self, source: int) -> Arrays:
        size = self._receive_bytes(8, source).view(np.int64)
        head = json.loads(self._receive_bytes(int(size[0]), source).tobytes())
        arrays: Arrays = {}
        for name, dtype, shape in head:
            raw = self._receive_bytes(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize, source)
            arrays[name] = raw.view(dtype).reshape(shape)
        return arrays

    def _receive_bytes(self, count: int, source: int) -> NDArray[np.uint8]:
        raw = np.zeros(count, np.uint8)
        for message in _messages(raw):
            self._communicate(dist.recv, message, source)
        return raw

    def _communicate(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return operation(*arguments)
        except (RuntimeError, ValueError):
            raise StillvecError(
                f"Process {self.rank} of {self.world_size} cannot reach the others: one of them has ended; its output, "
                "or the log of its machine, says why."
            ) from None


def _messages(raw: NDArray[np.uint8]) -> Iterator[torch.Tensor]:
    """Bytes as tensors over the same memory, each small enough for one message."""
    raw = raw if raw.flags.writeable else raw.copy()
    return (torch.from_numpy(raw[at : at + _MESSAGE_BYTES]) for at in range(0, len(raw), _MESSAGE_BYTES))


@contextmanager
def join_group(device: str) -> Iterator[ProcessGroup | None]:
    """The group of processes that torchrun started, or None. Only the first prints; an error in any is shown once."""
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield None
        return
    group = ProcessGroup()
    try:
        with ExitStack() as silence:
            if group.rank:
                silence.enter_context(redirect_stdout(io.StringIO()))
                silence.enter_context(redirect_stderr(io.StringIO()))
            group.select_device(device)
            yield group
    except BaseException:
        if not group.fails_first():
            sys.exit(1)
        raise
    group.close()
