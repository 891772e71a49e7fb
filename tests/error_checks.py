"""Errors by what they tell a program (code, path, line), and not by how they are worded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stillvec.errors import StillvecError


@contextmanager
def raises(
    error: type[StillvecError],
    *,
    code: str | None = None,
    path: Path | None = None,
    line: int | None = None,
    match: str | None = None,
) -> Iterator[pytest.ExceptionInfo[StillvecError]]:
    """Like `pytest.raises`, for the code, the file and the line of an error of ours."""
    with pytest.raises(error, match=match) as caught:
        yield caught
    if code is not None:
        assert caught.value.code == code
    if path is not None:
        assert caught.value.path == str(path)
        assert path.name in str(caught.value)
    if line is not None:
        assert caught.value.line == line
