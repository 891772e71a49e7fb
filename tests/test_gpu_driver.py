"""The driver of a GPU is started beside the import of torch."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from stillvec.teachers import gpu_driver


class _Driver:
    def __init__(self, status: int) -> None:
        self.status, self.calls = status, [""][:0]

    def __getattr__(self, name: str) -> Any:
        def call(*_: object) -> int:
            self.calls.append(name)
            return self.status

        return call


@pytest.mark.parametrize(
    ("status", "calls"), [(0, ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]), (100, ["cuInit"])]
)
def test_the_context_is_made_where_there_is_a_gpu(
    monkeypatch: pytest.MonkeyPatch, status: int, calls: list[str]
) -> None:
    driver = _Driver(status)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    gpu_driver._make_context()
    assert driver.calls == calls


def test_a_machine_without_the_driver_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    gpu_driver._make_context()
