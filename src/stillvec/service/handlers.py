"""A question and the sets of vectors in, an answer out; no HTTP here."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec import __version__
from stillvec.service import schemas
from stillvec.service.http_errors import Refusal
from stillvec.service.limits import Limits
from stillvec.service.models import Found, Served, Sets
from stillvec.vocabulary import Vocabulary, WordMatcher


def vectors(asked: schemas.VectorsQuestion, sets: Sets, limits: Limits) -> schemas.VectorsAnswer:
    served = sets.named(asked.model)
    _few(len(asked.words), limits.batch, "words")
    words = [served.known(word, "words") for word in asked.words]
    rows = served.vectors[words].tolist()
    data = [schemas.WordVector(word=word, vector=row) for word, row in zip(words, rows, strict=True)]
    return schemas.VectorsAnswer(model=served.name, dim=served.vectors.dim, data=data)


def similarity(asked: schemas.SimilarityQuestion, sets: Sets, limits: Limits) -> schemas.SimilarityAnswer:
    served = sets.named(asked.model)
    _few(len(asked.pairs), limits.batch, "pairs")
    pairs = [(served.known(a, "pairs"), served.known(b, "pairs")) for a, b in asked.pairs]
    data = [schemas.SimilarityItem(a=a, b=b, cosine=served.vectors.similarity(a, b)) for a, b in pairs]
    return schemas.SimilarityAnswer(model=served.name, data=data)


def nearest(asked: schemas.NearestQuestion, sets: Sets, limits: Limits) -> schemas.NearestAnswer:
    served = sets.named(asked.model)
    _few(asked.k, limits.k, "k")
    given = asked.model_fields_set & {"word", "text", "vector"}
    if len(given) != 1:
        came = " and ".join(sorted(given)) or "none of them"
        raise Refusal(400, f"Exactly one of 'word', 'text' and 'vector' is wanted, and {came} came.")
    itself = served.known(asked.word, "word") if "word" in given else None
    query = _direction(asked.vector, served) if "vector" in given else _read(itself, asked.text, served)
    search, found = served.nearest(query, asked.k, itself, asked.exact)
    return schemas.NearestAnswer(model=served.name, search=search, data=_listed(found))


def analogy(asked: schemas.AnalogyQuestion, sets: Sets, limits: Limits) -> schemas.AnalogyAnswer:
    served = sets.named(asked.model)
    _few(asked.k, limits.k, "k")
    a, b, c = (served.known(word, param) for word, param in ((asked.a, "a"), (asked.b, "b"), (asked.c, "c")))
    found = served.vectors.analogy(a, b, c, asked.k, method=asked.method)
    return schemas.AnalogyAnswer(model=served.name, method=asked.method, data=_listed(found))


def embed(asked: schemas.EmbedQuestion, sets: Sets, limits: Limits) -> schemas.EmbedAnswer:
    served = sets.named(asked.model)
    _few(len(asked.texts), limits.batch, "texts")
    rows = served.vectors.encode(asked.texts)  # (T, D)
    unknown = np.flatnonzero(~rows.any(axis=1)).tolist()
    data = (_units(rows) if asked.unit else rows).tolist()
    return schemas.EmbedAnswer(model=served.name, dim=served.vectors.dim, data=data, unknown=unknown)


def embeddings(asked: schemas.EmbeddingsQuestion, sets: Sets, limits: Limits) -> schemas.EmbeddingsAnswer:
    """Of length one, as OpenAI's are, so that clients which take the product for the cosine are right."""
    served = sets.named(asked.model)
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    _few(len(texts), limits.batch, "input")
    if asked.dimensions not in (None, served.vectors.dim):
        told = f"The vectors {served.name!r} have {served.vectors.dim} dimensions and are not cut"
        raise Refusal(400, f"{told}, and {asked.dimensions} were asked for.", param="dimensions")
    rows = _units(served.vectors.encode(texts))  # (T, D)
    packed = asked.encoding_format == "base64"
    held: list[Any] = (
        [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows] if packed else rows.tolist()
    )
    data = [schemas.Embedding(index=index, embedding=each) for index, each in enumerate(held)]
    words = len(_counting().rows(texts)[0])
    usage = schemas.Usage(prompt_tokens=words, total_tokens=words)
    return schemas.EmbeddingsAnswer(data=data, model=served.name, usage=usage)


def model(served: Served) -> schemas.Model:
    return schemas.Model(
        id=served.name,
        created=served.made,
        words=len(served.vectors),
        dim=served.vectors.dim,
        search=served.usual,
        recall_at_10=served.recall,
    )


def models(sets: Sets) -> schemas.Models:
    return schemas.Models(data=[model(served) for served in sets.values()])


def health(sets: Sets) -> schemas.Health:
    return schemas.Health(version=__version__, models=models(sets).data)


def _few(came: int, most: int, param: str) -> None:
    if came > most:
        raise Refusal(400, f"At most {most:,} are answered at once for {param!r}, and {came:,} came.", param=param)


def _read(itself: str | None, text: str, served: Served) -> NDArray[np.float32]:
    query = served.vectors[itself] if itself is not None else served.vectors.encode(text)
    if itself is None and not query.any():
        raise Refusal(
            404, f"The vectors {served.name!r} know no word of the text.", param="text", code="word_not_found"
        )
    return query


def _direction(vector: list[float], served: Served) -> NDArray[np.float32]:
    """In single precision, whatever the length: 1e300 would be infinite, 1e-300 nothing."""
    if len(vector) != served.vectors.dim:
        told = f"A vector of {served.vectors.dim} numbers is wanted, and one of {len(vector)} came."
        raise Refusal(400, told, param="vector")
    wide = np.asarray(vector, np.float64)
    largest = float(np.abs(wide).max(initial=0.0))
    return np.asarray(wide / largest if largest else wide, np.float32)


def _units(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)  # (T, 1)
    return np.asarray(rows / np.where(length > 0, length, 1), np.float32)


def _listed(found: Found) -> list[schemas.Neighbour]:
    return [schemas.Neighbour(word=word, score=score) for word, score in found]


@lru_cache(maxsize=1)
def _counting() -> WordMatcher:
    """Finds words and knows none: it only counts."""
    return WordMatcher(Vocabulary([]))
