"""Errors of the platform API: ``{"detail": …}``, as FastAPI words them."""

from collections.abc import Mapping
from http import HTTPStatus
from math import ceil
from typing import Any, Final

from ....protocol.error_codes import CallError, ErrorCode, ToolError

_STATUS: Final[Mapping[str, int]] = {
    ErrorCode.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    ErrorCode.VALIDATION_ERROR: HTTPStatus.UNPROCESSABLE_ENTITY,
    ErrorCode.UNAUTHORIZED: HTTPStatus.UNAUTHORIZED,
    ErrorCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
    ErrorCode.TOOL_NOT_FOUND: HTTPStatus.FORBIDDEN,
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.REQUEST_ID_CONFLICT: HTTPStatus.CONFLICT,
    ErrorCode.RESULT_EXPIRED: HTTPStatus.GONE,
    ErrorCode.OVER_CAPACITY: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.PROVIDER_ERROR: HTTPStatus.BAD_GATEWAY,
    ErrorCode.SERVICE_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.TIMEOUT: HTTPStatus.GATEWAY_TIMEOUT,
}
"""The status of each error code; 500 for all others."""


class PlatformError(Exception):
    """A request that fails."""

    def __init__(self, status: int, detail: Any, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """``detail`` is the message, or for an invalid body a list with an object per field."""
        self.status = status
        self.detail = detail
        self.headers = headers
        super().__init__(f"{status}: {detail}")


def invalid_fields(fields: Mapping[str, Any], *, place: str = "body") -> PlatformError:
    """The error for invalid fields of the body or the query. ``fields`` maps each field to its problem."""
    detail = [{"loc": [place, name], "msg": str(problem), "type": "value_error"} for name, problem in fields.items()]
    return PlatformError(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def error_of(error: CallError | ToolError) -> PlatformError:
    """The error for a call that failed."""
    known = error.to_tool_error() if isinstance(error, CallError) else error
    details = known.details or {}
    if "exists" in details:
        return PlatformError(HTTPStatus.CONFLICT, known.message)
    fields = details.get("fields")
    if known.code == ErrorCode.VALIDATION_ERROR and isinstance(fields, dict) and fields:
        return invalid_fields(fields)
    wait_ms = known.retry_after_ms
    headers = () if wait_ms is None else (("retry-after", str(ceil(wait_ms / 1000))),)
    return PlatformError(_STATUS.get(known.code, HTTPStatus.INTERNAL_SERVER_ERROR), known.message, headers)
