"""OpenAI's endpoints, so that clients written for them work unchanged, and the endpoints for monitoring."""

from fastapi import APIRouter, Response

from stillvec.service import handlers, schemas
from stillvec.service.metrics import CONTENT_TYPE
from stillvec.service.request_executor import Executor

router = APIRouter(prefix="/v1", tags=["OpenAI compatible"])
monitoring = APIRouter(tags=["monitoring"])


@router.post("/embeddings", response_model=schemas.EmbeddingsResponse, summary="Unit-length embeddings of texts")
async def create_embeddings(executor: Executor, request: schemas.EmbeddingsRequest) -> Response:
    return await executor.run(handlers.create_embeddings, request)


@router.get("/models", summary="All sets of vectors")
async def list_models(executor: Executor) -> schemas.Models:
    return handlers.list_models(executor.models)


@router.get("/models/{model:path}", summary="One set of vectors")
async def describe_model(executor: Executor, model: str) -> schemas.Model:
    return handlers.describe_model(executor.models.find(model))


@monitoring.get("/health", summary="Health check, and what is served; no token required")
async def check_health(executor: Executor) -> schemas.Health:
    return handlers.check_health(executor.models)


@monitoring.get(
    "/metrics",
    summary="Counters for Prometheus",
    response_class=Response,
    responses={200: {"content": {CONTENT_TYPE: {"schema": {"type": "string"}}}, "description": "Counters"}},
)
async def show_metrics(executor: Executor) -> Response:
    return Response(executor.metrics.render(executor.models), media_type=CONTENT_TYPE)
