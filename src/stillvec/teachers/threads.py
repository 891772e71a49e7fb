"""The number of threads of torch, which is global to the process: set it here, for as long as a run lasts."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(n_threads: int | None) -> Iterator[None]:
    """Run with `n_threads` threads and restore the number afterwards; None: torch's default."""
    if n_threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
