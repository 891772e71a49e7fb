"""The OpenAPI description with this server's own numbers: its limits, its dimensions, whether a token is wanted."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from stillvec.service.http_errors import Problem
from stillvec.service.limits import Limits

_MANY = (("VectorsQuestion", "words"), ("SimilarityQuestion", "pairs"), ("EmbedQuestion", "texts"))
REFUSALS = {  # what each status means; every address may refuse in these ways
    400: "What was asked makes no sense, or is more than is answered at once.",
    403: "The header `Host` has a name that is not this machine's.",
    404: "A word or a set of vectors that is not there.",
    408: "The request did not come in time.",
    413: "The body is too large.",
    503: "Too many requests at once.",
    504: "The answer was not there in time.",
}
_TOKEN = {401: "The token is missing or wrong."}


def responses(token: bool) -> dict[int | str, dict[str, Any]]:
    told = REFUSALS | (_TOKEN if token else {})
    return {status: {"model": Problem, "description": what} for status, what in sorted(told.items())}


def described(app: FastAPI, limits: Limits, dims: list[int], *, token: bool) -> dict[str, Any]:
    """The description; FastAPI's own with the numbers put in."""
    told = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = told["components"]["schemas"]
    for form, name in _MANY:
        parts[form]["properties"][name]["maxItems"] = limits.batch
    asked = parts["EmbeddingsQuestion"]["properties"]
    asked["input"]["anyOf"][1]["maxItems"] = limits.batch
    asked["dimensions"]["anyOf"][0]["enum"] = dims
    parts["NearestQuestion"]["properties"]["vector"] |= {"minItems": dims[0], "maxItems": dims[-1]}
    for form in ("NearestQuestion", "AnalogyQuestion"):
        parts[form]["properties"]["k"]["maximum"] = limits.k
    for path, methods in told["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("422", None)  # refused with 400 here, as OpenAI does
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "k":
                    parameter["schema"]["maximum"] = limits.k
            if token and path != "/health":
                operation["security"] = [{"token": []}]
    if token:
        told["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for unused in ("HTTPValidationError", "ValidationError"):
        parts.pop(unused, None)
    return told
