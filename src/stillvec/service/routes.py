"""stillvec's own endpoints: a simple request by GET, a complete one by POST."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from stillvec.service import handlers, schemas
from stillvec.service.limits import DEFAULT_K
from stillvec.service.request_executor import Executor

Word = Annotated[str, Query(min_length=1, examples=["ice"])]
A = Annotated[str, Query(min_length=1, examples=["man"])]
B = Annotated[str, Query(min_length=1, examples=["king"])]
C = Annotated[str, Query(min_length=1, examples=["woman"])]
Text = Annotated[str, Query(examples=["One vector for a whole text."])]
ModelName = Annotated[str | None, Query(description=schemas.MODEL)]
Count = Annotated[int, Query(ge=1)]

router = APIRouter(tags=["words and texts"])


@router.get("/vectors", response_model=schemas.VectorsResponse, summary="Vector of a word")
async def get_vector(executor: Executor, word: Word, model: ModelName = None) -> Response:
    return await executor.run(handlers.get_vectors, schemas.VectorsRequest(words=[word], model=model))


@router.post("/vectors", response_model=schemas.VectorsResponse, summary="Vectors of several words")
async def get_vectors(executor: Executor, request: schemas.VectorsRequest) -> Response:
    return await executor.run(handlers.get_vectors, request)


@router.get("/similarity", response_model=schemas.SimilarityResponse, summary="Cosine similarity of two words")
async def compare_words(executor: Executor, a: A, b: B, model: ModelName = None) -> Response:
    return await executor.run(handlers.compare_words, schemas.SimilarityRequest(pairs=[[a, b]], model=model))


@router.post("/similarity", response_model=schemas.SimilarityResponse, summary="Cosine similarities of word pairs")
async def compare_pairs(executor: Executor, request: schemas.SimilarityRequest) -> Response:
    return await executor.run(handlers.compare_words, request)


@router.get("/nearest", response_model=schemas.NearestResponse, summary="Nearest neighbours of a word")
async def find_nearest_to_word(
    executor: Executor,
    word: Word,
    k: Count = DEFAULT_K,
    exact: Annotated[bool | None, Query(description=schemas.EXACT)] = None,
    model: ModelName = None,
) -> Response:
    request = schemas.NearestRequest(word=word, k=k, exact=exact, model=model)
    return await executor.run(handlers.find_nearest, request)


@router.post(
    "/nearest", response_model=schemas.NearestResponse, summary="Nearest neighbours of a word, a text or a vector"
)
async def find_nearest(executor: Executor, request: schemas.NearestRequest) -> Response:
    return await executor.run(handlers.find_nearest, request)


@router.get("/analogy", response_model=schemas.AnalogyResponse, summary="Solve a : b = c : ?")
async def solve_analogy_of_words(
    executor: Executor, a: A, b: B, c: C, k: Count = 5, method: schemas.Method = "3cosadd", model: ModelName = None
) -> Response:
    request = schemas.AnalogyRequest(a=a, b=b, c=c, k=k, method=method, model=model)
    return await executor.run(handlers.solve_analogy, request)


@router.post("/analogy", response_model=schemas.AnalogyResponse, summary="Solve a : b = c : ?")
async def solve_analogy(executor: Executor, request: schemas.AnalogyRequest) -> Response:
    return await executor.run(handlers.solve_analogy, request)


@router.get("/embed", response_model=schemas.EmbedResponse, summary="Vector of a text")
async def embed_text(executor: Executor, text: Text, unit: bool = False, model: ModelName = None) -> Response:
    return await executor.run(handlers.embed_texts, schemas.EmbedRequest(texts=[text], unit=unit, model=model))


@router.post("/embed", response_model=schemas.EmbedResponse, summary="Vectors of several texts")
async def embed_texts(executor: Executor, request: schemas.EmbedRequest) -> Response:
    return await executor.run(handlers.embed_texts, request)
