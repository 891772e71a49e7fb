"""Training steps of a fixed shape, which a GPU replays as a graph.

A small step is dozens of kernels that take longer to launch than to run. Captured once and replayed, a step costs one
launch. For this its shapes may not depend on the data: batches are padded with a row that does not exist (`pad`, the
number of rows of the table), and what would be drawn in a step is drawn before it.
"""

import threading
from collections.abc import Callable, Iterable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

_CAPTURE = threading.Lock()  # models may train in several threads, each with a stream; one captures at a time
_WARM_UP = 2  # steps before the capture, which let libraries allocate what they need

Inputs = Mapping[str, Tensor]


class StepGraph:
    """Runs `step` for each row of its inputs; on a CPU, or where it cannot be captured, one by one.

    `step` gets one row of every input and all of what is shared, changes `state` in place and returns a tensor.
    """

    def __init__(self, step: Callable[[Inputs], Tensor], state: Iterable[Tensor]) -> None:
        self._step = step
        self._state = [tensor for tensor in state if tensor.is_cuda]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: dict[str, Tensor] = {}
        self._shared: dict[str, Tensor] = {}
        self._place = torch.zeros(1, dtype=torch.int64)
        self._results = torch.zeros(0)

    def run(self, inputs: Inputs, shared: Inputs) -> Tensor:
        """The results of all steps, stacked."""
        n_steps = len(next(iter(inputs.values())))
        if not self._state:
            rows = ({name: tensor[number] for name, tensor in inputs.items()} for number in range(n_steps))
            return torch.stack([self._step({**row, **shared}) for row in rows])
        if not (self._fits(self._inputs, inputs) and self._fits(self._shared, shared)):
            with _CAPTURE:
                self._capture(inputs, shared)
        for buffers, tensors in ((self._inputs, inputs), (self._shared, shared)):
            for name, tensor in tensors.items():
                buffers[name][: len(tensor)].copy_(tensor)
        self._place.zero_()
        assert self._graph is not None
        for _ in range(n_steps):
            self._graph.replay()
        return self._results[:n_steps].clone()

    @staticmethod
    def _fits(buffers: Mapping[str, Tensor], tensors: Inputs) -> bool:
        return buffers.keys() == tensors.keys() and all(
            len(buffers[name]) >= len(tensor) and buffers[name].shape[1:] == tensor.shape[1:]
            for name, tensor in tensors.items()
        )

    def _capture(self, inputs: Inputs, shared: Inputs) -> None:
        """Capture a step that reads the inputs at `_place`, which it advances."""
        self._graph = None  # its memory is free before the next takes some
        self._inputs = {name: torch.empty_like(tensor).copy_(tensor) for name, tensor in inputs.items()}
        self._shared = {name: torch.empty_like(tensor).copy_(tensor) for name, tensor in shared.items()}
        before = [tensor.clone() for tensor in self._state]
        self._place = torch.zeros(1, dtype=torch.int64, device=self._state[0].device)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                result = self._step(self._row())
        torch.cuda.current_stream().wait_stream(stream)
        n_steps = len(next(iter(inputs.values())))
        self._results = torch.zeros(n_steps, *result.shape, dtype=result.dtype, device=result.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._results.index_copy_(0, self._place, self._step(self._row())[None])
            self._place.add_(1)
        self._graph = graph
        for tensor, old in zip(self._state, before, strict=True):
            tensor.copy_(old)

    def _row(self) -> dict[str, Tensor]:
        rows = {name: tensor.index_select(0, self._place)[0] for name, tensor in self._inputs.items()}
        return rows | self._shared


def pad_segments(values: Tensor, lengths: Tensor, width: int, fill: int) -> Tensor:
    """Consecutive segments of `values` (N,) with these lengths (S,) as rows of equal width (S, width)."""
    row = torch.repeat_interleave(torch.arange(len(lengths), device=values.device), lengths)
    column = torch.arange(len(values), device=values.device) - (torch.cumsum(lengths, 0) - lengths)[row]
    padded = values.new_full((len(lengths), width), fill)
    padded[row, column] = values
    return padded


def unique_padded(ids: Tensor, pad: int) -> tuple[Tensor, Tensor]:
    """The distinct values of `ids` (N,), in order and padded to N, and the place of each id among them (N,)."""
    ordered, order = torch.sort(spread_padding(ids, pad), stable=True)
    segment = number_segments(ordered)
    rows = torch.full_like(ids, pad).scatter_(0, segment, ordered.clamp_max(pad))
    return rows, torch.empty_like(ids).scatter_(0, order, segment)


def spread_padding(ids: Tensor, pad: int) -> Tensor:
    """Another number from `pad` on for each padding: equal ones would be summed one by one."""
    return torch.where(ids < pad, ids, pad + torch.arange(len(ids), device=ids.device))


def number_segments(ordered: Tensor) -> Tensor:
    """The number of each run of equal values (N,), from 0."""
    return F.pad((ordered[1:] != ordered[:-1]).long(), (1, 0)).cumsum(0)


def round_capacity(number: int) -> int:
    """Room for this many and some more, so that other batches fit, too."""
    return (number + number // 8 + 31) // 32 * 32
