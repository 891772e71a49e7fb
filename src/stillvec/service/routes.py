"""Our own addresses: the simple question by GET, the whole one by POST."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from stillvec.service import handlers, schemas
from stillvec.service.limits import USUAL_K
from stillvec.service.request_executor import AtDesk

Asked = Annotated[str, Query(min_length=1, examples=["ice"])]
A = Annotated[str, Query(min_length=1, examples=["man"])]
B = Annotated[str, Query(min_length=1, examples=["king"])]
C = Annotated[str, Query(min_length=1, examples=["woman"])]
Text = Annotated[str, Query(examples=["One vector for a whole text."])]
Named = Annotated[str | None, Query(description=schemas.MODEL)]
Many = Annotated[int, Query(ge=1)]

router = APIRouter(tags=["words and texts"])


@router.get("/vectors", response_model=schemas.VectorsAnswer, summary="The vector of a word")
async def vectors_of(desk: AtDesk, word: Asked, model: Named = None) -> Response:
    return await desk.ask(handlers.vectors, schemas.VectorsQuestion(words=[word], model=model))


@router.post("/vectors", response_model=schemas.VectorsAnswer, summary="The vectors of words")
async def vectors(desk: AtDesk, question: schemas.VectorsQuestion) -> Response:
    return await desk.ask(handlers.vectors, question)


@router.get("/similarity", response_model=schemas.SimilarityAnswer, summary="The cosine of two words")
async def similarity_of(desk: AtDesk, a: A, b: B, model: Named = None) -> Response:
    return await desk.ask(handlers.similarity, schemas.SimilarityQuestion(pairs=[[a, b]], model=model))


@router.post("/similarity", response_model=schemas.SimilarityAnswer, summary="The cosines of pairs of words")
async def similarity(desk: AtDesk, question: schemas.SimilarityQuestion) -> Response:
    return await desk.ask(handlers.similarity, question)


@router.get("/nearest", response_model=schemas.NearestAnswer, summary="The words nearest to a word")
async def nearest_to(
    desk: AtDesk,
    word: Asked,
    k: Many = USUAL_K,
    exact: Annotated[bool | None, Query(description=schemas.EXACT)] = None,
    model: Named = None,
) -> Response:
    return await desk.ask(handlers.nearest, schemas.NearestQuestion(word=word, k=k, exact=exact, model=model))


@router.post(
    "/nearest", response_model=schemas.NearestAnswer, summary="The words nearest to a word, a text or a vector"
)
async def nearest(desk: AtDesk, question: schemas.NearestQuestion) -> Response:
    return await desk.ask(handlers.nearest, question)


@router.get("/analogy", response_model=schemas.AnalogyAnswer, summary="What is to c as b is to a")
async def analogy_of(
    desk: AtDesk, a: A, b: B, c: C, k: Many = 5, method: schemas.Method = "3cosadd", model: Named = None
) -> Response:
    return await desk.ask(handlers.analogy, schemas.AnalogyQuestion(a=a, b=b, c=c, k=k, method=method, model=model))


@router.post("/analogy", response_model=schemas.AnalogyAnswer, summary="What is to c as b is to a")
async def analogy(desk: AtDesk, question: schemas.AnalogyQuestion) -> Response:
    return await desk.ask(handlers.analogy, question)


@router.get("/embed", response_model=schemas.EmbedAnswer, summary="The vector of a text")
async def embed_text(desk: AtDesk, text: Text, unit: bool = False, model: Named = None) -> Response:
    return await desk.ask(handlers.embed, schemas.EmbedQuestion(texts=[text], unit=unit, model=model))


@router.post("/embed", response_model=schemas.EmbedAnswer, summary="The vectors of texts")
async def embed(desk: AtDesk, question: schemas.EmbedQuestion) -> Response:
    return await desk.ask(handlers.embed, question)
