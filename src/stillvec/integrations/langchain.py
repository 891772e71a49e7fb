"""LangChain: text embeddings for its vector stores.

>>> from stillvec.integrations.langchain import StillvecEmbeddings  # doctest: +SKIP
>>> store = InMemoryVectorStore(StillvecEmbeddings(stillvec.load("vectors")))  # doctest: +SKIP
"""

from stillvec.registry import require
from stillvec.vectors import WordVectors

require("langchain_core.embeddings", "langchain", "The LangChain integration")
from langchain_core.embeddings import Embeddings  # noqa: E402


class StillvecEmbeddings(Embeddings):
    """`WordVectors.encode` as a LangChain embedding: the mean of a text's word vectors, zero without a known word.

    Args:
        vectors: The vectors of the words.
    """

    def __init__(self, vectors: WordVectors) -> None:
        self.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One embedding per text."""
        return [[*map(float, row)] for row in self.vectors.encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The embedding of one text."""
        return self.embed_documents([text])[0]
