"""Where requests are handed to the threads that work, so that the loop only reads and writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response
from pydantic import BaseModel

from stillvec.service.limits import Limits
from stillvec.service.metrics import Meter
from stillvec.service.models import Sets

Q = TypeVar("Q", bound=BaseModel)


@dataclass(frozen=True)
class RequestExecutor:
    """What is served, how much of it at once, and who does the work."""

    sets: Sets
    limits: Limits
    meter: Meter = field(default_factory=Meter)
    pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        # a pool of its own: what outlives its request still holds its thread, so there are never more
        object.__setattr__(self, "pool", ThreadPoolExecutor(self.limits.threads, "answering"))

    async def ask(self, answer: Callable[[Q, Sets, Limits], BaseModel], question: Q) -> Response:
        """An answer, written as JSON by the thread that found it."""

        def work() -> bytes:
            return answer(question, self.sets, self.limits).model_dump_json().encode()

        content = await asyncio.get_running_loop().run_in_executor(self.pool, work)
        return Response(content, media_type="application/json")

    def close(self) -> None:
        for served in self.sets.values():
            served.stop()
        self.pool.shutdown(wait=False, cancel_futures=True)


async def _desk(request: Request) -> Any:
    return request.app.state.desk


AtDesk = Annotated[RequestExecutor, Depends(_desk)]
