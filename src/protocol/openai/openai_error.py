"""Errors in OpenAI's form, with their HTTP status (platform.openai.com/docs/guides/error-codes). Pure."""

from collections.abc import Mapping
from math import ceil
from typing import Any, Final

import msgspec

from ..error_codes import ErrorCode, Executed, ToolError
from ..name_suggestions import MODEL_LIST_HINT

_INVALID: Final = "invalid_request_error"
_SERVER: Final = "server_error"
_LIMIT: Final = "rate_limit_error"
_QUOTA: Final = "insufficient_quota"

_FORMS: Final[Mapping[str, tuple[int, str, str]]] = {
    ErrorCode.INVALID_REQUEST: (400, _INVALID, "invalid_request"),
    ErrorCode.VALIDATION_ERROR: (400, _INVALID, "invalid_value"),
    ErrorCode.UNAUTHORIZED: (401, _INVALID, "invalid_api_key"),
    ErrorCode.PERMISSION_DENIED: (403, _INVALID, "permission_denied"),
    ErrorCode.TOOL_NOT_FOUND: (403, _INVALID, "permission_denied"),
    ErrorCode.NOT_FOUND: (404, _INVALID, "not_found"),
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: (400, _INVALID, "context_length_exceeded"),
    ErrorCode.REQUEST_ID_CONFLICT: (409, _INVALID, "idempotency_key_in_use"),
    ErrorCode.RESULT_EXPIRED: (409, _INVALID, "result_expired"),
    ErrorCode.OVER_CAPACITY: (429, _LIMIT, "rate_limit_exceeded"),
    ErrorCode.RATE_LIMITED: (429, _LIMIT, "rate_limit_exceeded"),
    ErrorCode.PROVIDER_ERROR: (502, _SERVER, "provider_error"),
    ErrorCode.SERVICE_UNAVAILABLE: (503, _SERVER, "service_unavailable"),
    ErrorCode.TIMEOUT: (504, _SERVER, "timeout"),
}
"""Maps codes to the HTTP status, ``type`` and ``code``. Other codes are 500 with the code in lower case."""

_PASSED_ON: Final = frozenset({400, 404, 413, 422})
"""The vendor's status codes that blame the caller's request."""


_SDK_WAITS_MS: Final = 60_000
"""OpenAI's SDKs ignore a longer ``retry-after`` and send the request again at once."""

_MODEL_LIST: Final = "GET /v1/models lists them."
"""Replaces ``MODEL_LIST_HINT``."""


class OpenAIProblem(msgspec.Struct, frozen=True):
    """An error in the client's form."""

    status: int
    message: str
    type: str = _INVALID
    code: str = "invalid_request"
    param: str | None = None
    executed: Executed = "no"
    retryable: bool = False
    retry_after_ms: int | None = None
    details: dict[str, Any] | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def encode(self) -> bytes:
        """The body of the response, or the data of an event in a stream that has begun."""
        error: dict[str, Any] = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        error |= {"executed": self.executed, "retryable": self.retryable}
        if self.details:
            error["details"] = self.details
        return msgspec.json.encode({"error": error})

    def response_headers(self) -> list[tuple[bytes, bytes]]:
        """``x-should-retry`` decides whether OpenAI's SDKs send the request again by themselves."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers]
        soon = self.retryable and (self.retry_after_ms or 0) <= _SDK_WAITS_MS
        headers.append((b"x-should-retry", b"true" if soon else b"false"))
        if self.retry_after_ms is not None:
            headers.append((b"retry-after", str(ceil(self.retry_after_ms / 1000)).encode()))
            headers.append((b"retry-after-ms", str(self.retry_after_ms).encode()))
        return headers


def invalid(param: str | None, message: str, *, code: str = "invalid_value") -> OpenAIProblem:
    """The error for an invalid field of a request."""
    return OpenAIProblem(400, message, param=param, code=code)


def refusal_problem(status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> OpenAIProblem:
    """The error for a request that was refused before its body was read."""
    if status >= 500:
        return OpenAIProblem(status, message, _SERVER, "service_unavailable", retryable=True, headers=headers)
    code = {401: "invalid_api_key", 403: "permission_denied", 413: "request_too_large"}.get(status, "invalid_request")
    return OpenAIProblem(status, message, code=code, headers=headers)


def problem_of(error: ToolError) -> OpenAIProblem:
    """The error for a call that failed."""
    status, kind, code = _FORMS.get(error.code, (500, _SERVER, error.code.lower()))
    message, details = error.message, error.details or {}
    fields = details.get("fields")
    fields = fields if isinstance(fields, dict) else {}
    param = next(iter(fields), None)
    if error.code == ErrorCode.VALIDATION_ERROR and param in {"model", "provider"} and "suggestions" in details:
        message = message.replace(MODEL_LIST_HINT, _MODEL_LIST)
        problems = {field: str(problem).replace(MODEL_LIST_HINT, _MODEL_LIST) for field, problem in fields.items()}
        details = {**details, "fields": problems}
        status, code, param = 404, "model_not_found", "model"
    elif error.code == ErrorCode.RATE_LIMITED and not error.retryable:
        kind = code = _QUOTA
    elif error.code == ErrorCode.PROVIDER_ERROR and (vendor_status := details.get("vendor_status")) in _PASSED_ON:
        status, kind = int(vendor_status), _INVALID
        code = "model_not_found" if status == 404 else "rejected_by_vendor"
    return OpenAIProblem(
        status,
        message,
        kind,
        code,
        param,
        error.executed,
        error.retryable,
        error.retry_after_ms,
        details or None,
    )
