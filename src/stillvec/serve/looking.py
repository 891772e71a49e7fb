"""Our own addresses: the simple question by GET, the whole one by POST."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from stillvec.serve import answering, forms
from stillvec.serve.desk import AtDesk
from stillvec.serve.limits import USUAL_K

Asked = Annotated[str, Query(min_length=1, examples=["ice"])]
A = Annotated[str, Query(min_length=1, examples=["man"])]
B = Annotated[str, Query(min_length=1, examples=["king"])]
C = Annotated[str, Query(min_length=1, examples=["woman"])]
Text = Annotated[str, Query(examples=["One vector for a whole text."])]
Named = Annotated[str | None, Query(description=forms.MODEL)]
Many = Annotated[int, Query(ge=1)]

router = APIRouter(tags=["words and texts"])


@router.get("/vectors", response_model=forms.VectorsAnswer, summary="The vector of a word")
async def vectors_of(desk: AtDesk, word: Asked, model: Named = None) -> Response:
    return await desk.ask(answering.vectors, forms.VectorsQuestion(words=[word], model=model))


@router.post("/vectors", response_model=forms.VectorsAnswer, summary="The vectors of words")
async def vectors(desk: AtDesk, question: forms.VectorsQuestion) -> Response:
    return await desk.ask(answering.vectors, question)


@router.get("/similarity", response_model=forms.SimilarityAnswer, summary="The cosine of two words")
async def similarity_of(desk: AtDesk, a: A, b: B, model: Named = None) -> Response:
    return await desk.ask(answering.similarity, forms.SimilarityQuestion(pairs=[[a, b]], model=model))


@router.post("/similarity", response_model=forms.SimilarityAnswer, summary="The cosines of pairs of words")
async def similarity(desk: AtDesk, question: forms.SimilarityQuestion) -> Response:
    return await desk.ask(answering.similarity, question)


@router.get("/nearest", response_model=forms.NearestAnswer, summary="The words nearest to a word")
async def nearest_to(
    desk: AtDesk,
    word: Asked,
    k: Many = USUAL_K,
    exact: Annotated[bool | None, Query(description=forms.EXACT)] = None,
    model: Named = None,
) -> Response:
    return await desk.ask(answering.nearest, forms.NearestQuestion(word=word, k=k, exact=exact, model=model))


@router.post("/nearest", response_model=forms.NearestAnswer, summary="The words nearest to a word, a text or a vector")
async def nearest(desk: AtDesk, question: forms.NearestQuestion) -> Response:
    return await desk.ask(answering.nearest, question)


@router.get("/analogy", response_model=forms.AnalogyAnswer, summary="What is to c as b is to a")
async def analogy_of(
    desk: AtDesk, a: A, b: B, c: C, k: Many = 5, method: forms.Method = "3cosadd", model: Named = None
) -> Response:
    return await desk.ask(answering.analogy, forms.AnalogyQuestion(a=a, b=b, c=c, k=k, method=method, model=model))


@router.post("/analogy", response_model=forms.AnalogyAnswer, summary="What is to c as b is to a")
async def analogy(desk: AtDesk, question: forms.AnalogyQuestion) -> Response:
    return await desk.ask(answering.analogy, question)


@router.get("/embed", response_model=forms.EmbedAnswer, summary="The vector of a text")
async def embed_text(desk: AtDesk, text: Text, unit: bool = False, model: Named = None) -> Response:
    return await desk.ask(answering.embed, forms.EmbedQuestion(texts=[text], unit=unit, model=model))


@router.post("/embed", response_model=forms.EmbedAnswer, summary="The vectors of texts")
async def embed(desk: AtDesk, question: forms.EmbedQuestion) -> Response:
    return await desk.ask(answering.embed, question)
