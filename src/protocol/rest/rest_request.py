"""Requests of the REST API: their paths, their query and their bodies. Pure."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from ..error_codes import ErrorCode, ToolError
from ..frames import MAX_REQUEST_ID_CHARS, canonical_tool_name
from ..json_pieces import MAX_VALUES, TooManyValuesError, decode_in_pieces, finite

DOCUMENT_PATH: Final = "/openapi.json"
TOOLS_PREFIX: Final = "/tools/"
TOOLSETS_PREFIX: Final = "/toolsets/"

_SHOWN_CHARS: Final = 100
_decode: Final = msgspec.json.Decoder(float_hook=finite).decode


class RestRoute(NamedTuple):
    """The target of a path."""

    toolset: str | None
    """The toolset; None: the caller's default toolset."""
    tool: str | None
    """The tool to call; None: the OpenAPI document."""

    @property
    def method(self) -> str:
        return "GET" if self.tool is None else "POST"


class RestProblem(NamedTuple):
    """The reason why a request is answered with an error."""

    status: int
    error: ToolError
    headers: tuple[tuple[str, str], ...] = ()


def is_rest_path(path: str) -> bool:
    """Whether a path of the HTTP port belongs to the REST API."""
    return path == DOCUMENT_PATH or path.startswith((TOOLS_PREFIX, TOOLSETS_PREFIX))


def route_of(path: str) -> RestRoute | None:
    """The target of a decoded path; None if there is none."""
    toolset: str | None = None
    if path.startswith(TOOLSETS_PREFIX):
        toolset, slash, rest = path[len(TOOLSETS_PREFIX) :].partition("/")
        path = slash + rest
        if not toolset:
            return None
    if path == DOCUMENT_PATH:
        return RestRoute(toolset, None)
    tool = path.removeprefix(TOOLS_PREFIX)
    return RestRoute(toolset, canonical_tool_name(tool)) if tool not in {path, ""} and "/" not in tool else None


def invalid_request(
    message: str,
    status: int = HTTPStatus.BAD_REQUEST,
    headers: tuple[tuple[str, str], ...] = (),
    *,
    code: ErrorCode = ErrorCode.INVALID_REQUEST,
) -> RestProblem:
    """The problem of a request that is not a call."""
    retryable = status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.REQUEST_TIMEOUT}
    return RestProblem(status, ToolError(code, message, "no", retryable), headers)


def refused_request(status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> RestProblem:
    """The problem of a request that was refused before its body was read."""
    code = _REFUSED.get(status, ErrorCode.INVALID_REQUEST)
    return invalid_request(message, status, headers, code=code)


_REFUSED: Final[Mapping[int, ErrorCode]] = {
    HTTPStatus.UNAUTHORIZED: ErrorCode.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN: ErrorCode.PERMISSION_DENIED,
    HTTPStatus.NOT_FOUND: ErrorCode.NOT_FOUND,
    HTTPStatus.SERVICE_UNAVAILABLE: ErrorCode.SERVICE_UNAVAILABLE,
}


def timeout_of(query: Mapping[str, str]) -> float | RestProblem | None:
    """The call's timeout in milliseconds from the query; None if the query has none."""
    unknown = sorted(query.keys() - {"timeout_ms"})
    if unknown:
        return invalid_request(f"The query has {unknown[0][:_SHOWN_CHARS]!r}; only timeout_ms is known.")
    text = query.get("timeout_ms")
    if text is None:
        return None
    try:
        timeout_ms = float(text)
    except ValueError:
        timeout_ms = math.nan
    if not 0 < timeout_ms < math.inf:
        return invalid_request("timeout_ms in the query must be a number of milliseconds above 0.")
    return timeout_ms


def key_problem(key: str | None) -> RestProblem | None:
    """The problem of an ``Idempotency-Key``; None if there is none."""
    if key is None or 0 < len(key) <= MAX_REQUEST_ID_CHARS:
        return None
    return invalid_request(f"Idempotency-Key must have 1 to {MAX_REQUEST_ID_CHARS} characters.")


def decode_arguments(body: bytes) -> dict[str, Any] | RestProblem:
    """The arguments in a body of moderate length; an empty body means none. Never raises."""
    return _decoded(body, _decode)


def decode_long_arguments(body: bytes) -> dict[str, Any] | RestProblem:
    """``decode_arguments`` for any length, in a thread, with at most ``MAX_VALUES`` values."""
    return _decoded(body, decode_in_pieces)


def _decoded(body: bytes, decode: Any) -> dict[str, Any] | RestProblem:
    if not body.strip():
        return {}
    try:
        arguments = decode(body)
    except TooManyValuesError:
        return invalid_request(f"The body has more than {MAX_VALUES} values.")
    except (ValueError, RecursionError) as error:  # including msgspec's errors and UTF-8 errors
        return invalid_request(f"The body is not JSON, or too complex: {error}")
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        return invalid_request("The body must be a JSON object: the tool's arguments.")
    return arguments
