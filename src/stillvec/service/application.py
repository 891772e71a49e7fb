"""The FastAPI application over several sets of vectors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from fastapi import FastAPI

from stillvec import __version__
from stillvec.service import http_errors, openai, routes
from stillvec.service.docs_page import MANUAL, manual
from stillvec.service.limits import Limits
from stillvec.service.middleware import Guard
from stillvec.service.models import Sets
from stillvec.service.openapi_schema import described, responses
from stillvec.service.request_executor import RequestExecutor

_ABOUT = """
Static word vectors over HTTP: vectors, cosines, neighbours, analogies, means of texts, and embeddings in OpenAI's form.
Words are found as written, else in lower case where the vectors are. Whatever is refused is refused with one sentence
in `error.message`.
"""


def application(
    sets: Sets,
    limits: Limits | None = None,
    *,
    token: str | None = None,
    tell: Callable[[str], None] | None = None,
    names: Collection[str] = (),
) -> FastAPI:
    """An ASGI application; `tell` gets a line a request. With `names` it is called by one of them or refuses."""
    desk = RequestExecutor(sets, limits or Limits())
    app = FastAPI(
        title="stillvec",
        version=__version__,
        description=_ABOUT.strip(),
        lifespan=_living,
        docs_url=None,  # FastAPI's own loads its script from elsewhere
        redoc_url=None,
        responses=responses(token is not None),
    )
    app.state.desk = desk
    for router in (routes.router, openai.router, openai.watching):
        app.include_router(router)
    app.add_api_route(MANUAL, manual, include_in_schema=False)
    http_errors.install(app)
    app.add_middleware(Guard, limits=desk.limits, token=token, meter=desk.meter, tell=tell, names=names)
    told = described(app, desk.limits, sets.dims(), token=token is not None)
    app.openapi = lambda: told  # type: ignore[method-assign]  # FastAPI's own way to another description
    return app


@asynccontextmanager
async def _living(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.desk.close()
