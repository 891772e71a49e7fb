"""Runs requests in worker threads, so that the event loop only reads and writes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response
from pydantic import BaseModel

from stillvec.service.limits import Limits
from stillvec.service.metrics import Metrics
from stillvec.service.models import ServedModel, ServedModels
from stillvec.service.schemas import BaseRequest

R = TypeVar("R", bound=BaseRequest)


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

    async def run(self, handler: Callable[[R, ServedModel, Limits], BaseModel], request: R) -> Response:
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
