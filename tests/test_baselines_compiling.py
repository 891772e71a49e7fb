"""Compiled loops: the extra they need, and a place for what is compiled, or none."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from stillvec.baselines.glove import Glove, GloveModel
from stillvec.baselines.sent2vec import Sent2vec, Sent2vecModel
from stillvec.errors import MissingExtra


def test_without_numba_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtra, match=r"GloVe needs the package 'numba'.*stillvec\[train\]"):
        GloveModel(Glove(), 3)
    with pytest.raises(MissingExtra, match=r"Sent2vec needs the package 'numba'.*stillvec\[train\]"):
        Sent2vecModel(Sent2vec(), np.ones(3, np.int64))


@pytest.mark.parametrize(("mode", "cached"), [(None, True), (0o700, True), (0o777, False)])
def test_machine_code_is_cached_only_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int | None, cached: bool
) -> None:
    numba = pytest.importorskip("numba")
    from stillvec.training.loop_compiler import compile_loop

    def doubled(number: float) -> float:
        return number + number

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("STILLVEC_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "numba"
    if mode is not None:
        folder.mkdir(parents=True)
        folder.chmod(mode)
    loop = compile_loop(doubled)
    assert loop(1.5) == 3.0
    assert (loop.stats.cache_path or "").startswith(str(folder)) == cached  # type: ignore[attr-defined]
    assert bool(loop.stats.cache_path) == cached  # type: ignore[attr-defined]
    assert not (tmp_path / "cache").stat().st_mode & 0o077 or mode is not None
    assert numba.config.CACHE_DIR == ""


def test_where_nothing_can_be_kept_loops_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    caching = pytest.importorskip("numba.core.caching")
    from stillvec.training.loop_compiler import compile_loop

    def doubled(number: float) -> float:
        return number + number

    for kind in (caching.CacheImpl, caching.CompileResultCacheImpl):
        monkeypatch.setattr(kind, "_locator_classes", [])
    loop = compile_loop(doubled)
    assert loop(1.5) == 3.0
    assert loop.signatures  # type: ignore[attr-defined]
    assert not loop.stats.cache_path  # type: ignore[attr-defined]
