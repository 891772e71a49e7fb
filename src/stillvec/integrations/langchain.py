"""LangChain: the mean of a text's words as an `Embeddings`, for its vector stores.

>>> from stillvec.integrations.langchain import StillvecEmbeddings  # doctest: +SKIP
>>> store = InMemoryVectorStore(StillvecEmbeddings(stillvec.load("vectors")))  # doctest: +SKIP
"""

from __future__ import annotations

from stillvec.errors import MissingExtra
from stillvec.vectors import WordVectors

try:
    from langchain_core.embeddings import Embeddings
except ModuleNotFoundError as error:
    if error.name != "langchain_core":
        raise
    raise MissingExtra("langchain_core", "langchain", "An embedding of LangChain") from None


class StillvecEmbeddings(Embeddings):
    """`WordVectors.encode` under LangChain's names; a text without a known word is zero, and like nothing."""

    def __init__(self, vectors: WordVectors) -> None:
        self.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[*map(float, row)] for row in self.vectors.encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]
