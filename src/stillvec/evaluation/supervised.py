"""Shared parts of supervised tasks: items with training data, parallel training runs, scores over seeds."""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Estimate, Floats, Resampling, percentiles
from stillvec.evaluation.tasks import Items
from stillvec.heads.splits import Round
from stillvec.progress import relay

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
Measure = Callable[[Floats], Floats]  # weights of items (R, n) → (R,)


@dataclass(frozen=True)
class LearntItems(Items):
    """The tested items, the other items of the rounds, and the labels of all."""

    more: tuple[tuple[str, ...], ...] = ()  # (m,)
    labels: tuple[Any, ...] = ()  # (n + m,) the label of each, or those of its words
    rounds: tuple[Round, ...] = ()

    @classmethod
    def from_sentences(cls, words: tuple[tuple[str, ...], ...], n_tested: int, *rest: Any) -> Self:
        """The first `n_tested` are tested; gold is the number of words."""
        lengths = np.array([*map(len, words[:n_tested])], np.float64)
        return cls(words[:n_tested], lengths, (), words[n_tested:], *rest)

    @property
    def all_texts(self) -> tuple[tuple[str, ...], ...]:
        return self.texts + self.more


def share(part: float, whole: int, work: Generator[float, None, T]) -> Generator[float, None, T]:
    """Convert the progress of one of `whole` parts to progress of the whole."""
    return relay(work, lambda done: (part + done) / whole)


def read_sets(works: Sequence[Generator[float, None, T]]) -> Generator[float, None, list[T]]:
    """What each set reads, as the first half of the work."""
    results = []
    for number, work in enumerate(works):
        results.append((yield from share(number, 2 * len(works), work)))
    return results


def beside(works: Sequence[Generator[float, None, T]], n_threads: int | None = None) -> Generator[float, None, list[T]]:
    """Run independent generators in threads, as many at a time as there are cores, and return their results.

    Threads are enough because torch and NumPy release the GIL while they compute.
    """
    done = [0.0] * len(works)
    stopped = threading.Event()

    def drain(number: int) -> T:
        while not stopped.is_set():
            try:
                done[number] = next(works[number])
            except StopIteration as end:
                return cast("T", end.value)
        raise CancelledError

    with ThreadPoolExecutor(min(len(works), n_threads or os.cpu_count() or 1)) as pool:
        futures = [pool.submit(drain, number) for number in range(len(works))]
        try:
            while wait(futures, 0.2, FIRST_EXCEPTION).not_done and not any(_has_failed(future) for future in futures):
                yield sum(done) / len(works)
        finally:  # also when the consumer stops early
            stopped.set()
    results = [future.result() for future in sorted(futures, key=lambda future: not _has_failed(future))]  # raise first
    yield 1.0
    return results


def _has_failed(future: Future[Any]) -> bool:
    return future.done() and not isinstance(future.exception(), CancelledError | None)


def resolve_network_device(name: str) -> torch.device:
    """The device on which networks are trained: `auto` is a GPU if there is one."""
    from stillvec.teachers.device import resolve_device  # importing torch takes seconds

    return resolve_device(name)


@contextmanager
def single_thread() -> Iterator[None]:
    """One thread for torch, and for NumPy where threadpoolctl is installed.

    The models here are so small that distributing an operation over threads costs more than it saves, and many times
    as much on a machine whose cores are busy.
    """
    from stillvec.teachers.device import torch_threads  # importing torch takes seconds

    limits: Any = importlib.import_module("threadpoolctl") if importlib.util.find_spec("threadpoolctl") else None
    with torch_threads(1), nullcontext() if limits is None else limits.threadpool_limits(1):
        yield


def estimates(measures: Mapping[str, Measure], n: int, resampling: Resampling) -> dict[str, Estimate]:
    """Each measure (R, n) → (R,) on the items themselves, and its bootstrap interval over items."""
    if not n:
        return {name: Estimate(np.nan, np.nan, np.nan) for name in measures}
    resampled: dict[str, list[Floats]] = {name: [] for name in measures}
    for weights in resampling.weights(n):
        for name, measure in measures.items():
            resampled[name].append(measure(weights))
    values = {name: float(measure(np.ones((1, n)))[0]) for name, measure in measures.items()}
    return {name: Estimate(value, *percentiles(resampled[name])) for name, value in values.items()}


def ratio(over: NDArray[Any], under: NDArray[Any]) -> Callable[[Floats], Floats]:
    """The ratio of two sums over items, (n,) or (n, seeds) by (n,); the mean over seeds."""
    columns = over if over.ndim > 1 else over[:, None]
    return lambda weights: np.asarray(quotient(weights @ columns, (weights @ under)[:, None]).mean(axis=1))


def spread(over: NDArray[Any], under: NDArray[Any]) -> Callable[[Floats], Floats]:
    """The standard deviation of this ratio over seeds."""
    return lambda weights: np.asarray(quotient(weights @ over, (weights @ under)[:, None]).std(axis=1, ddof=1))


def f1_ratio(weights: Floats, counts: Floats, over_seeds: Callable[..., Any] = np.mean) -> Floats:
    """F1 = 2 correct / (predicted + gold) per resample (R,), averaged over seeds, of counts (n, 3, seeds).

    0 if both counts are 0.
    """
    n, _, seeds = counts.shape
    correct, predicted, gold = (weights @ counts.reshape(n, -1)).reshape(-1, 3, seeds).transpose(1, 0, 2)  # (R, seeds)
    return np.asarray(over_seeds(np.nan_to_num(quotient(2 * correct, predicted + gold)), axis=1))


def quotient(over: NDArray[Any], under: NDArray[Any]) -> Floats:
    """Quotients; NaN where the denominator is 0."""
    over, under = np.broadcast_arrays(over, under)
    return np.asarray(np.divide(over, under, out=np.full(over.shape, np.nan), where=under > 0))
