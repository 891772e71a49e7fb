"""The endpoints: a simple request by GET, a complete one by POST, those of OpenAI, and those for monitoring.

Requests are computed in worker threads, so that the event loop only reads and writes.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, TypeVar, get_type_hints

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from stillvec.service import handlers, schemas
from stillvec.service.fair_queue import FairQueue
from stillvec.service.http_errors import RequestError
from stillvec.service.limits import DEFAULT_K, Limits
from stillvec.service.metrics import CONTENT_TYPE, Metrics
from stillvec.service.models import ServedHead, ServedModel, ServedModels

R = TypeVar("R", bound=schemas.StrictRequest)
Handler = Callable[[R, Any, Limits], BaseModel]  # Any: what the request asks, vectors or a head


_LARGE_VALUES = 1 << 15  # numbers from which a request waits for other large ones
_LARGE_TEXT = 1 << 16  # characters
_SLICE = 1 << 18  # bytes of a response that are passed on at once


class RequestExecutor:
    """The served models, the limits, and the threads that compute responses."""

    def __init__(self, models: ServedModels, limits: Limits) -> None:
        self.models = models
        self.limits = limits
        self.metrics = Metrics()
        self.n_output = 0  # bytes of responses being sent
        n_large = max(1, limits.threads // 2)
        self._large = FairQueue(n_large, "stillvec-large-request")
        self._small = FairQueue(max(1, limits.threads - n_large), "stillvec-request")

    async def run(self, handler: Handler[R], request: R, *, client: str) -> Response:
        """The response of a handler, computed and serialized in a worker thread; small requests have their own."""
        model = self._find_model(request)
        dim = 1 if model is None else model.vectors.dim
        n_values, n_characters = len(request.items) * dim, sum(map(len, request.items))
        large = n_values > _LARGE_VALUES or n_characters > _LARGE_TEXT

        def work() -> bytes:
            if large and self.n_output > self.limits.output:
                message = "The server is sending too many large responses; try again later."
                raise RequestError(503, message, headers={"Retry-After": "1"})
            return handler(request, model, self.limits).model_dump_json().encode()

        return _SlicedResponse(self, await (self._large if large else self._small).run(client, work))

    def _find_model(self, request: schemas.StrictRequest) -> ServedModel | ServedHead | None:
        """What a request asks; None: the index of documents."""
        if isinstance(request, schemas.PredictRequest):
            return self.models.find_head(request.model)
        if isinstance(request, schemas.BaseRequest):
            return self.models.find(request.model, any_name=isinstance(request, schemas.EmbeddingsRequest))
        return None

    def close(self) -> None:
        for model in self.models.values():
            model.stop()
        self._large.close()
        self._small.close()


class _SlicedResponse(Response):
    """JSON in slices: the next one is sent when the client has read the last, so that it is not buffered as a whole."""

    media_type = "application/json"

    def __init__(self, executor: RequestExecutor, content: bytes) -> None:
        super().__init__(content)
        self._executor = executor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        content = memoryview(self.body)
        self._executor.n_output += len(content)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for at in range(0, len(content), _SLICE):
                body, more = bytes(content[at : at + _SLICE]), at + _SLICE < len(content)
                await send({"type": "http.response.body", "body": body, "more_body": more})
        finally:
            self._executor.n_output -= len(content)


async def _get_executor(request: Request) -> Any:
    return request.app.state.executor


async def _get_run(request: Request) -> Any:
    client = request.client.host if request.client else ""
    return partial(request.app.state.executor.run, client=client)


Executor = Annotated[RequestExecutor, Depends(_get_executor)]
Run = Annotated[Callable[[Handler[Any], Any], Awaitable[Response]], Depends(_get_run)]
Word = Annotated[str, Query(min_length=1, examples=["ice"])]
A = Annotated[str, Query(min_length=1, examples=["man"])]
B = Annotated[str, Query(min_length=1, examples=["king"])]
C = Annotated[str, Query(min_length=1, examples=["woman"])]
Text = Annotated[str, Query(examples=["One vector for a whole text."])]
ModelName = Annotated[str | None, Query(description=schemas.MODEL)]
Count = Annotated[int, Query(ge=1)]
Exact = Annotated[bool | None, Query(description=schemas.EXACT)]
Group = Annotated[bool, Query(description=schemas.GROUP)]

router = APIRouter(tags=["words and texts"])
openai = APIRouter(prefix="/v1", tags=["OpenAI compatible"])
listing = APIRouter(prefix="/v1", tags=["models"])
labels = APIRouter(prefix="/v1", tags=["labels"])
documents = APIRouter(prefix="/v1", tags=["documents"])
monitoring = APIRouter(tags=["monitoring"])


def _add_post(router: APIRouter, path: str, handler: Handler[Any], summary: str, name: str | None = None) -> None:
    """An endpoint whose body is the request of a handler."""
    hints = get_type_hints(handler)

    async def answer(run: Run, request: Any) -> Response:
        return await run(handler, request)

    answer.__annotations__["request"] = hints["request"]
    router.post(path, response_model=hints["return"], summary=summary, name=name or handler.__name__)(answer)


@router.get("/vectors", response_model=schemas.VectorsResponse, summary="Vector of a word")
async def get_vector(run: Run, word: Word, model: ModelName = None) -> Response:
    return await run(handlers.get_vectors, schemas.VectorsRequest(words=[word], model=model))


@router.get("/similarity", response_model=schemas.SimilarityResponse, summary="Cosine similarity of two words")
async def compare_words(run: Run, a: A, b: B, model: ModelName = None) -> Response:
    return await run(handlers.compare_words, schemas.SimilarityRequest(pairs=[[a, b]], model=model))


@router.get("/nearest", response_model=schemas.NearestResponse, summary="Nearest neighbours of a word")
async def find_nearest_to_word(
    run: Run, word: Word, k: Count = DEFAULT_K, exact: Exact = None, group: Group = False, model: ModelName = None
) -> Response:
    request = schemas.NearestRequest(word=word, k=k, exact=exact, group=group, model=model)
    return await run(handlers.find_nearest, request)


@router.get("/analogy", response_model=schemas.AnalogyResponse, summary="Solve a : b = c : ?")
async def solve_analogy_of_words(
    run: Run, a: A, b: B, c: C, k: Count = 5, method: schemas.Method = "3cosadd", model: ModelName = None
) -> Response:
    request = schemas.AnalogyRequest(a=a, b=b, c=c, k=k, method=method, model=model)
    return await run(handlers.solve_analogy, request)


@router.get("/embed", response_model=schemas.EmbedResponse, summary="Vector of a text")
async def embed_text(run: Run, text: Text, unit: bool = False, model: ModelName = None) -> Response:
    return await run(handlers.embed_texts, schemas.EmbedRequest(texts=[text], unit=unit, model=model))


_add_post(router, "/vectors", handlers.get_vectors, "Vectors of several words")
_add_post(router, "/similarity", handlers.compare_words, "Cosine similarities of word pairs", "compare_pairs")
_add_post(router, "/nearest", handlers.find_nearest, "Nearest neighbours of a word, a text or a vector")
_add_post(router, "/analogy", handlers.solve_analogy, "Solve a : b = c : ?")
_add_post(router, "/embed", handlers.embed_texts, "Vectors of several texts")
_add_post(openai, "/embeddings", handlers.create_embeddings, "Unit-length embeddings of texts")
_add_post(labels, "/predict", handlers.predict_labels, "Labels of texts, or tags of their words")


@documents.post("/search", response_model=schemas.SearchResponse, summary="Passages of the indexed documents")
async def search_documents(run: Run, executor: Executor, request: schemas.SearchRequest) -> Response:
    assert executor.models.index is not None  # else this endpoint is not offered
    return await run(partial(handlers.search_documents, executor.models.index), request)


@listing.get("/models", summary="All sets of vectors and heads")
async def list_models(executor: Executor) -> schemas.Models:
    return handlers.list_models(executor.models)


@listing.get("/models/{model:path}", summary="One set of vectors or head")
async def describe_model(executor: Executor, model: str) -> schemas.Model | schemas.HeadModel:
    return handlers.describe_model(executor.models.describe(model))


@monitoring.head("/health", include_in_schema=False)
@monitoring.get("/health", summary="Health check, and what is served; no token required")
async def check_health(executor: Executor) -> schemas.Health:
    return handlers.check_health(executor.models)


_COUNTERS: Any = {200: {"content": {CONTENT_TYPE: {"schema": {"type": "string"}}}, "description": "Counters"}}


@monitoring.get("/metrics", summary="Counters for Prometheus", response_class=Response, responses=_COUNTERS)
async def show_metrics(executor: Executor) -> Response:
    return Response(executor.metrics.render(executor.models), media_type=CONTENT_TYPE)
