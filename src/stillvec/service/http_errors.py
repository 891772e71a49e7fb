"""Every error of the server in one form, that of OpenAI: one sentence, a type, the parameter, a code."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from stillvec.errors import StillvecError

CODES = {  # as OpenAI's clients know them
    400: "invalid_value",
    401: "invalid_api_key",
    403: "host_not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "request_too_large",
    429: "rate_limit_exceeded",
    500: "internal_error",
    503: "overloaded",
    504: "timeout",
}
_NO_TOKEN_IDS = (
    "'input' must be a non-empty string or a list of non-empty strings. Token ids are not supported, "
    "because words are looked up in the text: send the text itself."
)
_ALTERNATIVES = ("str", "list[str]")  # pydantic's names of the parts of a union
_NOT_JSON = "The body is not valid JSON in UTF-8."


class ErrorDetail(BaseModel):
    """Why a request was rejected."""

    message: str = Field(description="One sentence: what was expected, what was received, how to fix it.")
    type: str
    param: str | None = Field(description="The invalid field or parameter, if there is one.")
    code: str | None


class ErrorResponse(BaseModel):
    """The body of every response that is not a success."""

    error: ErrorDetail


class RequestError(HTTPException):
    """A rejected request; an HTTPException, so that FastAPI lets it through while it reads a body."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None, headers: Any = None
    ) -> None:
        super().__init__(status, message, headers)
        self.param = param
        self.code = code

    def to_response(self) -> JSONResponse:
        return error_response(self.status_code, str(self.detail), self.param, self.code, self.headers)


def error_response(
    status: int, message: str, param: str | None = None, code: str | None = None, headers: Any = None
) -> JSONResponse:
    kind, group = ("invalid_request_error", 400) if status < 500 else ("server_error", 500)
    code = code or CODES.get(status, CODES[group])
    body = ErrorResponse(error=ErrorDetail(message=message, type=kind, param=param, code=code))
    return JSONResponse(body.model_dump(), status, headers)


def install_handlers(app: FastAPI) -> None:
    """Give every failure of a request the same form."""
    app.add_exception_handler(HTTPException, _handle_http)
    app.add_exception_handler(RequestValidationError, _handle_invalid)
    app.add_exception_handler(StillvecError, _handle_stillvec)
    app.add_exception_handler(Exception, _handle_unexpected)


async def _handle_http(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, RequestError):
        return error.to_response()
    assert isinstance(error, HTTPException)
    path = request.url.path
    shown = ascii(path if len(path) < 100 else path[:97] + "...")
    messages = {
        404: f"No endpoint at {shown}; see /docs for the list.",
        405: f"{shown} does not accept {request.method}; see /docs.",
        400: _NOT_JSON,
    }
    message = messages.get(error.status_code, f"The request failed: {error.detail}.")
    headers = {"Allow": _allow_header(request)} if error.status_code == 405 else error.headers
    return error_response(error.status_code, message, headers=headers)


def _allow_header(request: Request) -> str:
    """All methods of an endpoint: FastAPI has one route per method, and starlette names only that of the first."""
    routes = request.app.openapi()["paths"].get(request.url.path, {"get": {}})
    return ", ".join(sorted(method.upper() for method in routes))


async def _handle_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place, *fields = [str(part) for part in first["loc"] if part not in _ALTERNATIVES]
    if first["type"] == "json_invalid":
        return error_response(400, _NOT_JSON)
    if place == "body" and not fields and "json" not in request.headers.get("content-type", "json"):
        return error_response(400, "The body was not read as JSON; send Content-Type: application/json.")
    if fields[:1] == ["input"] and first["type"] != "missing":
        return error_response(400, _NO_TOKEN_IDS, "input")
    return error_response(400, _describe_invalid(place, fields, str(first["msg"])), ".".join(fields) or None)


async def _handle_stillvec(request: Request, error: Exception) -> JSONResponse:
    return error_response(400, str(error))


async def _handle_unexpected(request: Request, error: Exception) -> JSONResponse:
    return error_response(500, "Internal error; see the server's log.")


def _describe_invalid(place: str, fields: Sequence[str], reason: str) -> str:
    """pydantic's reason as a sentence that names the field."""
    kinds = {"query": "query parameter", "body": "field", "path": "path parameter", "header": "header"}
    name = ".".join(fields)
    where = f"Invalid {kinds.get(place, place)} {name!r}" if fields else f"Invalid {place}"
    return f"{where}: {reason[:1].lower()}{reason[1:].rstrip('.')}."
