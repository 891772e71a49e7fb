"""The endpoints: a simple request by GET, a complete one by POST, those of OpenAI, and those for monitoring.

Requests are computed in worker threads, so that the event loop only reads and writes.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, get_type_hints

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel

from stillvec.service import handlers, schemas
from stillvec.service.limits import DEFAULT_K, Limits
from stillvec.service.metrics import CONTENT_TYPE, Metrics
from stillvec.service.models import ServedModel, ServedModels

R = TypeVar("R", bound=schemas.BaseRequest)
Handler = Callable[[R, ServedModel, Limits], BaseModel]


@dataclass(frozen=True)
class RequestExecutor:
    """The served models, the limits, and the thread pool that computes responses."""

    models: ServedModels
    limits: Limits
    metrics: Metrics = field(default_factory=Metrics)
    pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        # an own pool: work that outlives its request keeps its thread, so there are never more than the limit
        object.__setattr__(self, "pool", ThreadPoolExecutor(self.limits.threads, "stillvec-request"))

    async def run(self, handler: Handler[R], request: R) -> Response:
        """The response of a handler, computed and serialized in a worker thread."""

        def work() -> bytes:
            return handler(request, self.models.find(request.model), self.limits).model_dump_json().encode()

        content = await asyncio.get_running_loop().run_in_executor(self.pool, work)
        return Response(content, media_type="application/json")

    def close(self) -> None:
        for model in self.models.values():
            model.stop()
        self.pool.shutdown(wait=False, cancel_futures=True)


async def _get_executor(request: Request) -> Any:
    return request.app.state.executor


Executor = Annotated[RequestExecutor, Depends(_get_executor)]
Word = Annotated[str, Query(min_length=1, examples=["ice"])]
A = Annotated[str, Query(min_length=1, examples=["man"])]
B = Annotated[str, Query(min_length=1, examples=["king"])]
C = Annotated[str, Query(min_length=1, examples=["woman"])]
Text = Annotated[str, Query(examples=["One vector for a whole text."])]
ModelName = Annotated[str | None, Query(description=schemas.MODEL)]
Count = Annotated[int, Query(ge=1)]
Exact = Annotated[bool | None, Query(description=schemas.EXACT)]

router = APIRouter(tags=["words and texts"])
openai = APIRouter(prefix="/v1", tags=["OpenAI compatible"])
monitoring = APIRouter(tags=["monitoring"])


def _add_post(router: APIRouter, path: str, handler: Handler[Any], summary: str, name: str | None = None) -> None:
    """An endpoint whose body is the request of a handler."""
    hints = get_type_hints(handler)

    async def answer(executor: Executor, request: Any) -> Response:
        return await executor.run(handler, request)

    answer.__annotations__["request"] = hints["request"]
    router.post(path, response_model=hints["return"], summary=summary, name=name or handler.__name__)(answer)


@router.get("/vectors", response_model=schemas.VectorsResponse, summary="Vector of a word")
async def get_vector(executor: Executor, word: Word, model: ModelName = None) -> Response:
    return await executor.run(handlers.get_vectors, schemas.VectorsRequest(words=[word], model=model))


@router.get("/similarity", response_model=schemas.SimilarityResponse, summary="Cosine similarity of two words")
async def compare_words(executor: Executor, a: A, b: B, model: ModelName = None) -> Response:
    return await executor.run(handlers.compare_words, schemas.SimilarityRequest(pairs=[[a, b]], model=model))


@router.get("/nearest", response_model=schemas.NearestResponse, summary="Nearest neighbours of a word")
async def find_nearest_to_word(
    executor: Executor, word: Word, k: Count = DEFAULT_K, exact: Exact = None, model: ModelName = None
) -> Response:
    request = schemas.NearestRequest(word=word, k=k, exact=exact, model=model)
    return await executor.run(handlers.find_nearest, request)


@router.get("/analogy", response_model=schemas.AnalogyResponse, summary="Solve a : b = c : ?")
async def solve_analogy_of_words(
    executor: Executor, a: A, b: B, c: C, k: Count = 5, method: schemas.Method = "3cosadd", model: ModelName = None
) -> Response:
    request = schemas.AnalogyRequest(a=a, b=b, c=c, k=k, method=method, model=model)
    return await executor.run(handlers.solve_analogy, request)


@router.get("/embed", response_model=schemas.EmbedResponse, summary="Vector of a text")
async def embed_text(executor: Executor, text: Text, unit: bool = False, model: ModelName = None) -> Response:
    return await executor.run(handlers.embed_texts, schemas.EmbedRequest(texts=[text], unit=unit, model=model))


_add_post(router, "/vectors", handlers.get_vectors, "Vectors of several words")
_add_post(router, "/similarity", handlers.compare_words, "Cosine similarities of word pairs", "compare_pairs")
_add_post(router, "/nearest", handlers.find_nearest, "Nearest neighbours of a word, a text or a vector")
_add_post(router, "/analogy", handlers.solve_analogy, "Solve a : b = c : ?")
_add_post(router, "/embed", handlers.embed_texts, "Vectors of several texts")
_add_post(openai, "/embeddings", handlers.create_embeddings, "Unit-length embeddings of texts")


@openai.get("/models", summary="All sets of vectors")
async def list_models(executor: Executor) -> schemas.Models:
    return handlers.list_models(executor.models)


@openai.get("/models/{model:path}", summary="One set of vectors")
async def describe_model(executor: Executor, model: str) -> schemas.Model:
    return handlers.describe_model(executor.models.find(model))


@monitoring.get("/health", summary="Health check, and what is served; no token required")
async def check_health(executor: Executor) -> schemas.Health:
    return handlers.check_health(executor.models)


_COUNTERS: Any = {200: {"content": {CONTENT_TYPE: {"schema": {"type": "string"}}}, "description": "Counters"}}


@monitoring.get("/metrics", summary="Counters for Prometheus", response_class=Response, responses=_COUNTERS)
async def show_metrics(executor: Executor) -> Response:
    return Response(executor.metrics.render(executor.models), media_type=CONTENT_TYPE)
