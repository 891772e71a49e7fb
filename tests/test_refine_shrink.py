"""`shrink`: the whole folder fits into a given size, with what keeps most neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors, load, refine, save
from stillvec.cli import main
from stillvec.errors import UsageError
from stillvec.formats import read_manifest
from stillvec.refinement import shrink as module
from stillvec.refinement.shrink import Shrink


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    """Clusters of words in a space whose variance lies in few directions."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 48))[random.integers(0, 60, 1200)] + random.normal(size=(1200, 48)) / 2
    rows *= 0.93 ** np.arange(48)
    return WordVectors(Vocabulary([f"wörd-{row}" for row in range(1200)], range(1200, 0, -1)), rows.astype(np.float32))


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


@pytest.mark.parametrize("kilobytes", [85, 150])
def test_the_folder_fits_and_loads_as_it_was_made(kilobytes: int, vectors: WordVectors, tmp_path: Path) -> None:
    save(vectors, tmp_path / "v")
    assert (
        main(["refine", str(tmp_path / "v"), "--step", f"shrink:kilobytes={kilobytes}", "--out", f"{tmp_path}/s"]) == 0
    )
    assert size_of(tmp_path / "s") <= 1000 * kilobytes < size_of(tmp_path / "v")
    small = load(tmp_path / "s")
    assert small.vocabulary == vectors.vocabulary
    assert np.array_equal(small.matrix, Shrink(kilobytes)(vectors).matrix)
    assert {step["chosen_by"] for step in read_manifest(tmp_path / "s")["refined"]} == {"shrink"}
    assert read_manifest(tmp_path / "s")["stored"] == ("int8" if kilobytes == 150 else "pq")


def test_more_bytes_keep_more_neighbours(vectors: WordVectors) -> None:
    kept = [refine(vectors, Shrink(size)).provenance["refined"][-1]["neighbours_kept"] for size in (72, 85, 100)]
    assert kept == sorted(kept)
    assert 0.1 < kept[0] < kept[-1] < 1


def test_the_best_candidate_is_chosen(vectors: WordVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: dict[int, Any] = {}

    def keep(self: Shrink, given: WordVectors, steps: Any) -> float:
        tried[getattr(steps[0], "dim", given.dim)] = steps[-1].parts
        return float(len(steps) == 2 and steps[0].dim == 32)

    monkeypatch.setattr(Shrink, "_keep", keep)
    pca, quantize = (step for step, _ in Shrink(105).choose(vectors))
    assert (pca.dim, quantize.parts) == (32, tried[32])
    assert {*tried} == {48, 32, 16}
    words = module._count_bytes(vectors)
    for dim, parts in tried.items():
        n_bytes = 105_000 - module._RESERVED - words - 1024 * dim
        assert parts == min(dim, n_bytes // 1200)


def test_words_that_do_not_fit_are_refused(vectors: WordVectors) -> None:
    with pytest.raises(UsageError, match="need at least") as caught:
        refine(vectors, "shrink:kilobytes=50")
    least = int(str(caught.value).split("at least ")[1].split(";")[0].replace(",", ""))
    refine(vectors, f"shrink:kilobytes={least}")
    with pytest.raises(UsageError, match="kilobytes"):
        Shrink(0)
