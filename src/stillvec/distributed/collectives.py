"""The processes of torchrun as one program: the first one prints, and an error in any of them is shown once."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout

from stillvec.distributed.process_group import ProcessGroup


@contextmanager
def join_group(device: str) -> Iterator[ProcessGroup | None]:
    """The group of processes that torchrun started; None where there is only one process."""
    if not ProcessGroup.is_started():
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
