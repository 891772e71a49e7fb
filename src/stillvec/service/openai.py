"""OpenAI's addresses, so that clients made for them work unchanged; and those of whoever watches the server."""

from __future__ import annotations

from fastapi import APIRouter, Response

from stillvec.service import handlers, schemas
from stillvec.service.metrics import TEXT
from stillvec.service.request_executor import AtDesk

router = APIRouter(prefix="/v1", tags=["as OpenAI's"])
watching = APIRouter(tags=["the server"])


@router.post("/embeddings", response_model=schemas.EmbeddingsAnswer, summary="Embeddings of texts, of length one")
async def embeddings(desk: AtDesk, question: schemas.EmbeddingsQuestion) -> Response:
    return await desk.ask(handlers.embeddings, question)


@router.get("/models", summary="The sets of vectors")
async def models(desk: AtDesk) -> schemas.Models:
    return handlers.models(desk.sets)


@router.get("/models/{model:path}", summary="One set of vectors")
async def model(desk: AtDesk, model: str) -> schemas.Model:
    return handlers.model(desk.sets.named(model))


@watching.get("/health", summary="Whether it is well, and what it serves; needs no token")
async def health(desk: AtDesk) -> schemas.Health:
    return handlers.health(desk.sets)


@watching.get(
    "/metrics",
    summary="Counters, as Prometheus reads them",
    response_class=Response,
    responses={200: {"content": {TEXT: {"schema": {"type": "string"}}}, "description": "Counters"}},
)
async def metrics(desk: AtDesk) -> Response:
    return Response(desk.meter.text(desk.sets), media_type=TEXT)
