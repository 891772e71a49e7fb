"""What the server refuses: one sentence, in OpenAI's form of an error, whatever the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from stillvec.errors import StillvecError

CODES = {  # status: (type, code), as OpenAI's clients know them
    400: ("invalid_request_error", "invalid_value"),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "host_not_allowed"),
    404: ("invalid_request_error", "not_found"),
    405: ("invalid_request_error", "method_not_allowed"),
    408: ("invalid_request_error", "request_timeout"),
    413: ("invalid_request_error", "request_too_large"),
    500: ("server_error", "internal_error"),
    503: ("server_error", "overloaded"),
    504: ("server_error", "timeout"),
}
_TOKENS = (
    "'input' is a text or a list of texts, none of them empty; numbers of tokens are not read here, "
    "as words are looked up in the text: send the text itself."
)


class Complaint(BaseModel):
    """Why a request was refused."""

    message: str = Field(description="One sentence: what was wanted, what came, the cure.")
    type: str
    param: str | None = Field(description="The field or parameter that is at fault, where it is one.")
    code: str | None


class Problem(BaseModel):
    """The body of every answer that is not a success."""

    error: Complaint


class Refusal(HTTPException):
    """A request that is refused; an HTTPException, so that FastAPI lets it through while it reads a body."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None, headers: Any = None
    ) -> None:
        super().__init__(status, message, headers)
        self.param = param
        self.code = code

    def answer(self) -> JSONResponse:
        return refused(self.status_code, str(self.detail), self.param, self.code, self.headers)


def refused(
    status: int,
    message: str,
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    kind, usual = CODES.get(status, CODES[400 if status < 500 else 500])
    body = Problem(error=Complaint(message=message, type=kind, param=param, code=code or usual))
    return JSONResponse(body.model_dump(), status, headers)


def install(app: FastAPI) -> None:
    """Every way a request can fail ends in the same form."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(StillvecError, _ours)
    app.add_exception_handler(Exception, _broken)


async def _http(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, Refusal):
        return error.answer()
    assert isinstance(error, HTTPException)
    known = {
        404: f"There is nothing at {_shown(request.url.path)}; /docs tells what there is.",
        405: f"{request.method} is not taken at {_shown(request.url.path)}; /docs tells what is.",
        400: "The body is not JSON in UTF-8.",
    }
    message = known.get(error.status_code, f"The request failed: {error.detail}.")
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    return refused(error.status_code, message, headers=headers)


def _allowed(request: Request) -> str:
    """What an address takes; FastAPI has a route a method, and starlette would name the first one's only."""
    routes = request.app.openapi()["paths"].get(request.url.path, {"get": {}})
    return ", ".join(sorted(method.upper() for method in routes))


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place, *inside = [str(part) for part in first["loc"]]
    if first["type"] == "json_invalid":
        return refused(400, "The body is not JSON in UTF-8.")
    if inside[:1] == ["input"] and first["type"] != "missing":
        return refused(400, _TOKENS, "input")
    return refused(400, _sentence(place, inside, str(first["msg"])), ".".join(inside) or None)


async def _ours(request: Request, error: Exception) -> JSONResponse:
    return refused(400, str(error))


async def _broken(request: Request, error: Exception) -> JSONResponse:
    return refused(500, "The server failed at this request; its log says where.")


def _sentence(place: str, inside: Sequence[str], said: str) -> str:
    """pydantic's complaint as a sentence that names the place."""
    where = f"{'.'.join(inside)!r} in the {place}" if inside else f"The {place}"
    told = said[:1].lower() + said[1:].rstrip(".")
    return f"{where} is not what is wanted: {told}."


def _shown(path: str) -> str:
    return ascii(path if len(path) < 100 else path[:97] + "...")
