"""Pieces of work that run beside each other: what they end with, progress, failure, stopping."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from stillvec.evaluation.supervised import beside

pytest.importorskip("torch")


def _counting(upto: int, end: str) -> Generator[float, None, str]:
    for number in range(upto):
        yield number / upto
    return end


def test_each_gives_what_it_ends_with_in_the_order_given() -> None:
    work = beside([_counting(upto, f"end of {upto}") for upto in (300, 2, 40, 1)])
    events = []
    while True:
        try:
            events.append(next(work))
        except StopIteration as end:
            found = end.value
            break
    assert found == ["end of 300", "end of 2", "end of 40", "end of 1"]
    assert events == sorted(events)
    assert events[-1] == 1


@pytest.mark.parametrize("first", [True, False])
def test_a_failure_is_reported_and_ends_the_others(first: bool) -> None:
    begun = threading.Event()

    def endless() -> Generator[float, None, str]:
        while True:
            begun.set()
            yield 0.0

    def failing() -> Generator[float, None, str]:
        begun.wait(10)
        yield 0.0
        raise ValueError("this one")

    with pytest.raises(ValueError, match="this one"):
        for _ in beside([failing(), endless()] if first else [endless(), failing()]):
            pass


def test_a_generator_closed_early_leaves_nothing_running() -> None:
    before = threading.active_count()

    def endless() -> Generator[float, None, str]:
        while True:
            yield 0.0

    work = beside([endless(), endless()])
    assert next(work) == 0
    work.close()
    assert threading.active_count() == before
