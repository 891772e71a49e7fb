"""The FastAPI application that serves several sets of vectors, and its page /docs."""

import json
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, RedirectResponse

from stillvec import __version__
from stillvec.report.web_page import fill_template, join_assets, read_asset
from stillvec.service import http_errors, routes
from stillvec.service.limits import Limits
from stillvec.service.middleware import DOCS_PATH, RequestGuard
from stillvec.service.models import ServedModels

_DESCRIPTION = """\
Static word vectors over HTTP: vectors, similarities, nearest neighbours, analogies, text embeddings, labels of texts,
and an endpoint compatible with OpenAI's. Words are looked up as written, then in lower case if the vectors are
lower-cased. Every error has one sentence in `error.message`."""
_BATCHES = (
    ("VectorsRequest", "words"),
    ("SimilarityRequest", "pairs"),
    ("EmbedRequest", "texts"),
    ("PredictRequest", "texts"),
)
_STRING = {"type": "string"}
_TEXTS: dict[str, list[dict[str, Any]]] = {  # what a head reads
    "text": [_STRING],
    "span": [_STRING],  # with the span in brackets
    "tokens": [_STRING, {"type": "array", "items": _STRING}],
    "pair": [{"type": "array", "items": _STRING, "minItems": 2, "maxItems": 2}],
}
ERRORS = {  # status: meaning; every endpoint may respond with these
    400: "An invalid request, or one above a limit.",
    403: "The `Host` header does not name this machine.",
    404: "An unknown word or set of vectors.",
    408: "The request was not received in time.",
    413: "The body is too large.",
    503: "Too many concurrent requests, connections or large responses.",
    504: "No result within the time limit.",
}
_TOKEN_ERROR = {401: "The token is missing or wrong.", 429: "Too many wrong tokens from this address."}


def create_app(
    models: ServedModels,
    limits: Limits | None = None,
    *,
    token: str | None = None,
    log: Callable[[str], None] | None = None,
    hosts: Collection[str] = (),
) -> FastAPI:
    """An ASGI application.

    `log` receives one line per request. With `hosts`, requests whose Host header names another host are rejected.
    """
    executor = routes.RequestExecutor(models, limits or Limits())
    app = FastAPI(
        title="stillvec",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=_close_at_end,
        docs_url=None,  # FastAPI's own page loads a script from another host
        redoc_url=None,
        responses=_describe_errors(token is not None),
    )
    app.state.executor = executor
    for router, is_offered in (
        (routes.router, bool(models)),
        (routes.labels, bool(models.heads)),
        (routes.documents, models.index is not None),
        (routes.openai, bool(models)),
        (routes.listing, True),
        (routes.monitoring, True),
    ):
        if is_offered:
            app.include_router(router)
    app.add_api_route(DOCS_PATH, _show_docs, include_in_schema=False)
    app.add_api_route("/", _redirect_to_docs, include_in_schema=False)
    http_errors.install_handlers(app)
    app.add_middleware(RequestGuard, executor.limits, token, executor.metrics, log, hosts)
    units = {served.head.kind.unit for served in models.heads.values()}
    schema = _build_schema(app, executor.limits, models.dims(), units, token=token is not None)
    app.openapi = lambda: schema  # type: ignore[method-assign]  # how FastAPI lets one replace its schema
    return app


async def _redirect_to_docs() -> RedirectResponse:
    return RedirectResponse(DOCS_PATH.lstrip("/"))  # relative, so that it also works behind a proxy's prefix


async def _show_docs() -> HTMLResponse:
    """The page is the same for every server and contains nothing that a token protects."""
    page, policy = _build_page()
    headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    return HTMLResponse(page, headers=headers)


@lru_cache(maxsize=1)
def _build_page() -> tuple[str, str]:
    """The page, which the browser fills from `/openapi.json`, and its content security policy."""
    parts, policy = join_assets(__package__, "docs.css", ["docs.js"], "'self'")
    return fill_template(read_asset(__package__, "docs.html"), parts | {"version": __version__}), policy


@asynccontextmanager
async def _close_at_end(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.executor.close()


def _describe_errors(token: bool) -> dict[int | str, dict[str, Any]]:
    errors, model = ERRORS | (_TOKEN_ERROR if token else {}), http_errors.ErrorResponse
    return {status: {"model": model, "description": meaning} for status, meaning in sorted(errors.items())}


def _build_schema(
    app: FastAPI, limits: Limits, dims: list[int], units: Collection[str], *, token: bool
) -> dict[str, Any]:
    """FastAPI's schema with the values of this server filled in."""
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = schema["components"]["schemas"]
    for name, field in _BATCHES:
        if name in parts:
            parts[name]["properties"][field]["maxItems"] = limits.batch
    if units:
        texts = parts["PredictRequest"]["properties"]["texts"]
        forms = {json.dumps(form): form for unit in sorted(units) for form in _TEXTS[unit]}
        texts["items"] = {"anyOf": [*forms.values()]} if len(forms) > 1 else next(iter(forms.values()))
        if {*units} == {"pair"}:
            texts["examples"] = [[["A man sleeps.", "Someone is asleep."]]]
    if dims:
        embeddings = parts["EmbeddingsRequest"]["properties"]
        embeddings["input"]["anyOf"][1]["maxItems"] = limits.batch
        for name in ("EmbeddingsRequest", "EmbedRequest"):
            parts[name]["properties"]["dimensions"]["anyOf"][0] |= {"minimum": 1, "maximum": dims[-1]}
        parts["NearestRequest"]["properties"]["vector"] |= {"minItems": dims[0], "maxItems": dims[-1]}
    for name in ("NearestRequest", "AnalogyRequest", "SearchRequest"):
        if name in parts:
            parts[name]["properties"]["k"]["maximum"] = limits.k
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("422", None)  # answered with 400 here, as OpenAI does
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "k":
                    parameter["schema"]["maximum"] = limits.k
            if token and path != "/health":
                operation["security"] = [{"token": []}]
    if token:
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for unused in ("HTTPValidationError", "ValidationError"):
        parts.pop(unused, None)
    return schema
