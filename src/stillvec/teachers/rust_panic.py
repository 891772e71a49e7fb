"""Panics of libraries in Rust, such as tokenizers, as exceptions that can be handled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def raise_panics() -> Iterator[None]:
    """Raise RuntimeError for a panic, whose own class is no `Exception` and cannot be imported."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(str(error)) from error
