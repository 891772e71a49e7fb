"""Requests to responses; no HTTP here."""

import base64
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec import __version__
from stillvec.heads.predictions import describe_predictions
from stillvec.numerics import unit_rows
from stillvec.search import SearchIndex
from stillvec.search.sense_neighbours import find_near
from stillvec.service import schemas
from stillvec.service.http_errors import RequestError
from stillvec.service.limits import Limits
from stillvec.service.models import ScoredWords, ServedHead, ServedModel, ServedModels
from stillvec.vocabulary import Vocabulary, WordMatcher

_LONGEST = 8  # a text that a head reads has at most this share of the values of a response in characters


def get_vectors(request: schemas.VectorsRequest, model: ServedModel, limits: Limits) -> schemas.VectorsResponse:
    _check_batch(request.words, model, limits, "words")
    words = [model.resolve_word(word, "words") for word in request.words]
    rows = model.vectors[words].tolist()
    data = [schemas.WordVector(word=word, vector=row) for word, row in zip(words, rows, strict=True)]
    return schemas.VectorsResponse(model=model.name, dim=model.vectors.dim, data=data)


def compare_words(request: schemas.SimilarityRequest, model: ServedModel, limits: Limits) -> schemas.SimilarityResponse:
    _check_at_most(len(request.pairs), limits.batch, "pairs")
    pairs = [(model.resolve_word(a, "pairs"), model.resolve_word(b, "pairs")) for a, b in request.pairs]
    scored = [(a, b, model.vectors.similarity(a, b)) for a, b in pairs]
    data = [schemas.SimilarityItem(a=a, b=b, score=score, cosine=score) for a, b, score in scored]
    return schemas.SimilarityResponse(model=model.name, data=data)


def find_nearest(request: schemas.NearestRequest, model: ServedModel, limits: Limits) -> schemas.NearestResponse:
    _check_at_most(request.k, limits.k, "k")
    queries = request.model_fields_set & {"word", "text", "vector"}
    if len(queries) != 1:
        got = " and ".join(map(repr, sorted(queries))) or "none of them"
        raise RequestError(400, f"Expected exactly one of 'word', 'text' and 'vector', got {got}.")
    word = model.resolve_word(request.word, "word") if "word" in queries else None
    query = _scale_query(request.vector, model) if "vector" in queries else _encode_query(word, request.text, model)
    if request.group:
        search, groups = model.nearest_groups(query, request.k, word, request.exact)
        data = [schemas.NearestWord(word=head, score=cosine, forms=[*forms]) for head, cosine, forms in groups]
        forms, senses = [*groups.forms], _find_senses(word, request.k, model)
        return schemas.NearestResponse(model=model.name, search=search, data=data, forms=forms, senses=senses)
    search, nearest = model.nearest(query, request.k, word, request.exact)
    data = [schemas.NearestWord(word=other, score=cosine) for other, cosine in nearest]
    senses = _find_senses(word, request.k, model)
    return schemas.NearestResponse(model=model.name, search=search, data=data, senses=senses)


def _find_senses(word: str | None, k: int, model: ServedModel) -> list[schemas.NearestSense]:
    """The senses of a word that has several, each with its nearest words."""
    vectors = model.vectors
    found = vectors.senses.find(word) if word is not None and vectors.senses is not None else []
    near = [find_near(vectors, sense, k) for sense in found]
    return [
        schemas.NearestSense(share=sense.share, examples=[*sense.examples], data=_to_neighbours(words))
        for sense, words in zip(found, near, strict=True)
    ]


def solve_analogy(request: schemas.AnalogyRequest, model: ServedModel, limits: Limits) -> schemas.AnalogyResponse:
    _check_at_most(request.k, limits.k, "k")
    a, b, c = (model.resolve_word(getattr(request, param), param) for param in "abc")
    answers = model.vectors.analogy(a, b, c, request.k, method=request.method)
    return schemas.AnalogyResponse(model=model.name, method=request.method, data=_to_neighbours(answers))


def embed_texts(request: schemas.EmbedRequest, model: ServedModel, limits: Limits) -> schemas.EmbedResponse:
    _check_batch(request.texts, model, limits, "texts")
    rows = model.vectors.encode(request.texts)  # (T, D)
    unknown = np.flatnonzero(~rows.any(axis=1)).tolist()
    rows = rows[:, : _check_dimensions(request.dimensions, model)]
    data = (unit_rows(rows) if request.unit else rows).tolist()
    return schemas.EmbedResponse(model=model.name, dim=rows.shape[1], data=data, unknown=unknown)


def create_embeddings(
    request: schemas.EmbeddingsRequest, model: ServedModel, limits: Limits
) -> schemas.EmbeddingsResponse:
    """Embeddings have length one, as OpenAI's, so that clients may use the dot product as the cosine."""
    texts = request.items
    _check_batch(texts, model, limits, "input")
    dim = _check_dimensions(request.dimensions, model)
    rows = unit_rows(model.vectors.encode(texts)[:, :dim])  # (T, dim)
    values: list[Any] = rows.tolist()
    if request.encoding_format == "base64":
        values = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows]
    data = [schemas.Embedding(index=index, embedding=value) for index, value in enumerate(values)]
    n_words = len(_word_counter().match_rows(texts)[0])
    usage = schemas.Usage(prompt_tokens=n_words, total_tokens=n_words)
    return schemas.EmbeddingsResponse(data=data, model=model.name, usage=usage)


def search_documents(
    index: SearchIndex, request: schemas.SearchRequest, _: None, limits: Limits
) -> schemas.SearchResponse:
    _check_at_most(request.k, limits.k, "k")
    settings = {"method": request.method, "unique": request.unique, "exact": request.exact}
    hits = index.search(request.query, request.k, **settings)  # type: ignore[arg-type]
    n_characters = sum(len(hit.text) for hit in hits) if request.text else 0
    if n_characters > limits.body:
        message = f"The passages have {n_characters:,} characters, more than {limits.body:,}; leave out 'text'."
        raise RequestError(400, message, param="text")
    data = [
        schemas.Passage(
            score=hit.score,
            id=hit.id,
            position=hit.position,
            snippet=hit.snippet,
            highlights=[*hit.highlights],
            text=hit.text if request.text else None,
        )
        for hit in hits
    ]
    return schemas.SearchResponse(method=request.method, documents=index.n_documents, passages=len(index), data=data)


def predict_labels(request: schemas.PredictRequest, model: ServedHead, limits: Limits) -> schemas.PredictResponse:
    head, lengths = model.head, [*map(len, request.items)]
    _check_at_most(len(lengths), min(limits.batch, max(1, limits.values // len(head.labels))), "texts")
    has_words = request.explain or head.kind.unit == "tokens"
    for what, count, limit in (
        ("A text must have", max(lengths), limits.values // _LONGEST),
        ("Tags and 'explain' are for", sum(lengths) if has_words else 0, limits.values),
    ):
        if count > limit:
            raise RequestError(400, f"{what} at most {limit:,} characters, got {count:,}.", param="texts")
    for number, text in enumerate(request.texts):
        if head.kind.unit in ("text", "span") and not isinstance(text, str):
            raise RequestError(400, f"{model.name!r} reads texts; item {number} of 'texts' is a list.", param="texts")
        if head.kind.unit == "pair" and (isinstance(text, str) or len(text) != 2):
            message = f"{model.name!r} compares texts; item {number} of 'texts' must be a list of two."
            raise RequestError(400, message, param="texts")
    described = describe_predictions(head, request.texts, explain=request.explain)
    data = [schemas.Prediction(**item) for item in described]
    return schemas.PredictResponse(model=model.name, head=head.name, data=data)


def describe_model(model: ServedModel | ServedHead) -> schemas.Model | schemas.HeadModel:
    if isinstance(model, ServedHead):
        return schemas.HeadModel(
            id=model.name,
            created=model.loaded_at,
            head=model.head.name,
            labels=[*model.head.labels],
            unit=model.head.kind.unit,
            multilabel=model.head.multilabel,
            words=len(model.vectors),
            dim=model.vectors.dim,
        )
    return schemas.Model(
        id=model.name,
        created=model.loaded_at,
        words=len(model.vectors),
        dim=model.vectors.dim,
        ordered=model.ordered,
        search=model.default_search,
        recall_at_10=model.recall,
    )


def list_models(models: ServedModels) -> schemas.Models:
    return schemas.Models(data=[describe_model(model) for model in models.list_all().values()])


def check_health(models: ServedModels) -> schemas.Health:
    return schemas.Health(version=__version__, models=list_models(models).data)


def _check_at_most(count: int, limit: int, param: str) -> None:
    if count > limit:
        what = "" if param == "k" else " items"
        raise RequestError(400, f"{param!r} must be at most {limit:,}{what}, got {count:,}.", param=param)


def _check_dimensions(dimensions: int | None, model: ServedModel) -> int:
    dim = model.vectors.dim
    if dimensions is None or 1 <= dimensions <= dim:
        return dim if dimensions is None else dimensions
    message = f"'dimensions' must be from 1 to {dim} for {model.name!r}, got {dimensions}."
    raise RequestError(400, message, param="dimensions")


def _check_batch(items: list[str], model: ServedModel, limits: Limits, param: str) -> None:
    """One vector per item: their numbers are limited as well."""
    _check_at_most(len(items), min(limits.batch, max(1, limits.values // model.vectors.dim)), param)


def _encode_query(word: str | None, text: str, model: ServedModel) -> NDArray[np.float32]:
    query = model.vectors[word] if word is not None else model.vectors.encode(text)
    if word is None and not query.any():
        message = f"No word of the text is in the vocabulary of {model.name!r}."
        raise RequestError(404, message, param="text", code="word_not_found")
    return query


def _scale_query(vector: list[float], model: ServedModel) -> NDArray[np.float32]:
    """In single precision, scaled first: 1e300 would overflow, 1e-300 would become zero."""
    if len(vector) != model.vectors.dim:
        message = f"'vector' must have {model.vectors.dim} numbers, got {len(vector):,}."
        raise RequestError(400, message, param="vector")
    wide = np.asarray(vector, np.float64)
    largest = float(np.abs(wide).max(initial=0.0))
    return np.asarray(wide / largest if largest else wide, np.float32)


def _to_neighbours(scored: ScoredWords) -> list[schemas.Neighbour]:
    return [schemas.Neighbour(word=word, score=score) for word, score in scored]


@lru_cache(maxsize=1)
def _word_counter() -> WordMatcher:
    """Splits texts into words for the usage count; its vocabulary is empty."""
    return WordMatcher(Vocabulary([]))
