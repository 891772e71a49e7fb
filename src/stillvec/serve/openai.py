"""OpenAI's addresses, so that clients made for them work unchanged; and those of whoever watches the server."""

from __future__ import annotations

from fastapi import APIRouter, Response

from stillvec.serve import answering, forms
from stillvec.serve.desk import AtDesk
from stillvec.serve.metering import TEXT

router = APIRouter(prefix="/v1", tags=["as OpenAI's"])
watching = APIRouter(tags=["the server"])


@router.post("/embeddings", response_model=forms.EmbeddingsAnswer, summary="Embeddings of texts, of length one")
async def embeddings(desk: AtDesk, question: forms.EmbeddingsQuestion) -> Response:
    return await desk.ask(answering.embeddings, question)


@router.get("/models", summary="The sets of vectors")
async def models(desk: AtDesk) -> forms.Models:
    return answering.models(desk.sets)


@router.get("/models/{model:path}", summary="One set of vectors")
async def model(desk: AtDesk, model: str) -> forms.Model:
    return answering.model(desk.sets.named(model))


@watching.get("/health", summary="Whether it is well, and what it serves; needs no token")
async def health(desk: AtDesk) -> forms.Health:
    return answering.health(desk.sets)


@watching.get(
    "/metrics",
    summary="Counters, as Prometheus reads them",
    response_class=Response,
    responses={200: {"content": {TEXT: {"schema": {"type": "string"}}}, "description": "Counters"}},
)
async def metrics(desk: AtDesk) -> Response:
    return Response(desk.meter.text(desk.sets), media_type=TEXT)
