"""The approximate search beside brute force; its recall beside one counted by hand."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec.vectors import WordVectors

pytest.importorskip("usearch")
pytest.importorskip("fastapi")

from stillvec.search.approximate_search import ApproximateIndex
from stillvec.service import models as service_models
from stillvec.service.models import ServedModel


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((40, 24))
    rows = centres[rng.integers(40, size=2500)] + 0.6 * rng.standard_normal((2500, 24))
    rows *= rng.uniform(0.01, 100, (2500, 1))  # cosines do not mind
    rows[7] = 0
    return WordVectors([f"w{number}" for number in range(2500)], rows.astype(np.float32))


@pytest.fixture(scope="module")
def index(vectors: WordVectors) -> ApproximateIndex:
    made = ApproximateIndex(vectors.matrix)
    assert made.build()
    return made


def _brute(vectors: WordVectors, row: int, k: int) -> dict[int, float]:
    wide = vectors.matrix.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1)
    lengths[lengths == 0] = np.inf
    cosines = wide @ wide[row] / lengths / lengths[row]
    best = [other for other in np.argsort(-cosines, kind="stable").tolist() if other != row][:k]
    return {other: cosines[other] for other in best}


def test_its_neighbours_are_those_of_brute_force_and_its_cosines_exact(
    index: ApproximateIndex, vectors: WordVectors
) -> None:
    common = 0
    for row in range(0, 2500, 50):
        wanted = _brute(vectors, row, 10)
        found = index.nearest(vectors[f"w{row}"], 10, frozenset([row]))
        assert len(found) == 10
        assert [cosine for _, cosine in found] == sorted((cosine for _, cosine in found), reverse=True)
        common += len({other for other, _ in found} & wanted.keys())
        exact = _brute(vectors, row, 2499)
        assert all(cosine == pytest.approx(exact[other], abs=1e-5) for other, cosine in found)
    assert common > 0.95 * 500


def test_the_recall_it_states_is_the_one_counted_by_a_slow_loop(index: ApproximateIndex, vectors: WordVectors) -> None:
    sample = np.random.default_rng(0).permutation(2500)[:100].tolist()
    shares = [
        len(
            {other for other, _ in index.nearest(vectors[f"w{row}"], 10, frozenset([row]))}
            & {*_brute(vectors, row, 10)}
        )
        for row in sample
    ]
    assert index.recall == pytest.approx(sum(shares) / 1000)


def test_an_index_that_finds_wrong_words_states_a_low_recall(vectors: WordVectors) -> None:
    class Careless(ApproximateIndex):
        def nearest(self, query: Any, k: int, exclude: frozenset[int]) -> list[tuple[int, float]]:
            return [(row, 0.0) for row in range(k)]

    careless = Careless(vectors.matrix)
    assert careless.build()
    assert careless.recall is not None
    assert careless.recall < 0.1


def test_a_zero_vector_is_never_proposed(index: ApproximateIndex, vectors: WordVectors) -> None:
    found = index.nearest(vectors["w0"], 2500, frozenset())
    assert 7 not in {row for row, _ in found}


def test_building_can_be_stopped(vectors: WordVectors) -> None:
    requested = count()
    stopped = ApproximateIndex(vectors.matrix)
    assert not stopped.build(lambda: next(requested) > 0)
    assert stopped.recall is None
    requested = count()
    assert not ApproximateIndex(vectors.matrix).build(lambda: next(requested) > 5)  # while it is being measured


def test_vectors_without_words_have_an_index(vectors: WordVectors) -> None:
    empty = ApproximateIndex(np.zeros((0, 24), np.float32))
    assert empty.build()
    assert empty.nearest(vectors["w0"], 3, frozenset()) == []


def test_many_threads_may_search_at_once(index: ApproximateIndex, vectors: WordVectors) -> None:
    alone = [index.nearest(vectors[f"w{row}"], 10, frozenset()) for row in range(10, 30)]
    together: dict[int, Any] = {}

    def search(row: int) -> None:
        together[row] = index.nearest(vectors[f"w{row}"], 10, frozenset())

    threads = [threading.Thread(target=search, args=(row,)) for row in range(10, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[row] for row in range(10, 30)] == alone


def test_a_large_set_builds_its_index_at_the_start_and_uses_it(
    vectors: WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_models, "LARGE", 2500)
    events: list[str] = []
    ready = threading.Event()
    served = ServedModel("large", vectors, lambda line: (events.append(line), ready.set())[0])
    assert served.default_search == "approximate"
    served.prepare()
    assert ready.wait(60)
    assert served.nearest(vectors["w0"], 3, "w0", None)[0] == "approximate"
    search, exact = served.nearest(vectors["w0"], 3, "w0", True)
    assert search == "exact"
    assert [word for word, _ in exact] == [f"w{row}" for row in _brute(vectors, 0, 3)]
    assert f"recall@10 {served.recall:.3f}" in events[0]
    served.stop()


def test_a_set_that_was_stopped_builds_nothing(vectors: WordVectors) -> None:
    served = ServedModel("stopped", vectors, lambda line: None)
    served.stop()
    assert served.nearest(vectors["w0"], 3, None, False)[0] == "exact"
    assert served.index is None


def test_vectors_are_written_and_read_as_text_after_an_index_was_built(tmp_path: Path) -> None:
    """In a process of its own: here SciPy may have loaded its code before."""
    code = """
import numpy as np
from stillvec import WordVectors, load, save
from stillvec.search.approximate_search import ApproximateIndex
vectors = WordVectors(["ice", "snow"], np.eye(2, 4))
ApproximateIndex(vectors.matrix)
save(vectors, "v.vec")
assert np.array_equal(load("v.vec").matrix, vectors.matrix)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(stillvec.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
