"""Tables that memory has no room for: the same numbers, in a file without a name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_corpus import collect_statistics, counted, sentences
from tiny_teachers import tiny_teacher

from stillvec.errors import StillvecError
from stillvec.learners import LEARNERS, table_memory
from stillvec.learners.table_memory import word_table
from stillvec.memory import free_memory

CPU = torch.device("cpu")


@pytest.fixture
def short_of_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(table_memory, "free_memory", lambda: 100)
    monkeypatch.setenv("STILLVEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _mapped() -> int:
    """Files without a name that this process has in its memory."""
    return sum("table-" in line and "(deleted)" in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what is mapped")
def test_a_table_that_is_too_large_is_a_file_and_leaves_none(short_of_memory: Path) -> None:
    before = _mapped()
    table = word_table(50, 8, CPU, -torch.inf)
    assert _mapped() == before + 1
    assert [*short_of_memory.iterdir()] == []
    assert torch.equal(table, torch.full((50, 8), -torch.inf))
    del table
    assert _mapped() == before


@pytest.mark.parametrize(
    "method", ["aggregate", "whitened_context", "whitened_window", "additive", "token_table", "auto"]
)
def test_methods_give_the_same_from_files(method: str, request: pytest.FixtureRequest) -> None:
    texts, teacher = sentences(40), tiny_teacher()
    vocabulary = counted(texts)
    found = []
    for short in (False, True):
        if short:
            request.getfixturevalue("short_of_memory")
        learner = LEARNERS[method]()
        found.append(
            learner.finish(collect_statistics({method: learner}, teacher, vocabulary, texts)[method]).vectors.matrix
        )
    np.testing.assert_array_equal(*found)


def test_a_full_disk_is_reported_if_memory_is_short_too(short_of_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_memory.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(StillvecError, match="fewer --max-words"):
        word_table(1000, 8, CPU)
    assert [*short_of_memory.iterdir()] == []


def test_free_memory_is_some_and_not_all_there_could_be() -> None:
    assert 1 << 20 < free_memory() < 1 << 50
