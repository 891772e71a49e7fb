"""The processes of torchrun as one program: the first speaks, and an error anywhere is told once and ends all."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout

from stillvec.distributed.process_group import ProcessGroup


@contextmanager
def together(device: str) -> Iterator[ProcessGroup | None]:
    """Our place among the processes; None where there is only one."""
    if not ProcessGroup.started():
        yield None
        return
    team = ProcessGroup()
    try:
        with ExitStack() as silence:
            if team.number:
                silence.enter_context(redirect_stdout(io.StringIO()))
                silence.enter_context(redirect_stderr(io.StringIO()))
            team.take_device(device)
            yield team
    except BaseException:
        if not team.fails_first():
            sys.exit(1)
        raise
    team.end()
