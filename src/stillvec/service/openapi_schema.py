"""The OpenAPI schema with this server's own values: its limits, its dimensions, whether it requires a token."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from stillvec.service.http_errors import ErrorResponse
from stillvec.service.limits import Limits

_BATCHES = (("VectorsRequest", "words"), ("SimilarityRequest", "pairs"), ("EmbedRequest", "texts"))
ERRORS = {  # status: meaning; every endpoint may respond with these
    400: "An invalid request, or one above a limit.",
    403: "The `Host` header does not name this machine.",
    404: "An unknown word or set of vectors.",
    408: "The request was not received in time.",
    413: "The body is too large.",
    503: "Too many concurrent requests.",
    504: "No result within the time limit.",
}
_TOKEN_ERROR = {401: "The token is missing or wrong."}


def describe_errors(token: bool) -> dict[int | str, dict[str, Any]]:
    errors = ERRORS | (_TOKEN_ERROR if token else {})
    return {status: {"model": ErrorResponse, "description": meaning} for status, meaning in sorted(errors.items())}


def build_schema(app: FastAPI, limits: Limits, dims: list[int], *, token: bool) -> dict[str, Any]:
    """FastAPI's schema with the values of this server filled in."""
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = schema["components"]["schemas"]
    for name, field in _BATCHES:
        parts[name]["properties"][field]["maxItems"] = limits.batch
    embeddings = parts["EmbeddingsRequest"]["properties"]
    embeddings["input"]["anyOf"][1]["maxItems"] = limits.batch
    embeddings["dimensions"]["anyOf"][0]["enum"] = dims
    parts["NearestRequest"]["properties"]["vector"] |= {"minItems": dims[0], "maxItems": dims[-1]}
    for name in ("NearestRequest", "AnalogyRequest"):
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
