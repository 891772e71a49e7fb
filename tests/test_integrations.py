"""Adapters for other frameworks."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from stillvec import WordVectors
from stillvec.errors import MissingExtra

VECTORS = WordVectors(["ice", "snow", "fire"], [[1.0, 0.1], [0.9, 0.3], [-1.0, 0.2]])


def test_a_vector_store_of_langchain_finds_the_nearest_texts() -> None:
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    from stillvec.integrations.langchain import StillvecEmbeddings

    ours = StillvecEmbeddings(VECTORS)
    assert isinstance(ours, Embeddings)
    store = InMemoryVectorStore(ours)
    store.add_texts(["a house on fire", "Snow!", "ice, everywhere"])
    assert [each.page_content for each in store.similarity_search("ice", k=2)] == ["ice, everywhere", "Snow!"]
    np.testing.assert_allclose(ours.embed_documents(["ice snow", "zzz"]), VECTORS.encode(["ice snow", "zzz"]))
    assert ours.embed_query("ice") == VECTORS.encode("ice").tolist()


def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "stillvec.integrations.langchain", raising=False)
    for name in ("langchain_core", "langchain_core.embeddings"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"stillvec\[langchain\]"):
        import stillvec.integrations.langchain  # noqa: F401
