"""Results of the methods about resources and prompts. Pure."""

from typing import Any, Final

import msgspec

from ..error_codes import ErrorCode
from ..json_rpc import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, MessageProblem
from ..tool_call import ToolResult
from .mcp_call import missing_capability
from .mcp_result import CACHE, error_text, with_result_type
from .mcp_revision import McpRevision

_READ: Final = "resources/read"
_CACHED: Final = ("resources/list", "resources/templates/list", "prompts/list")
CATALOG_METHODS: Final = (*_CACHED, _READ, "prompts/get", "completion/complete")
"""The methods about resources and prompts, of every revision."""
ASKING_METHODS: Final = (_READ, "prompts/get")
"""The methods during which a server may ask its client; ``tools/call`` is the third such method."""
FOLLOWING_METHODS: Final = ("resources/subscribe", "resources/unsubscribe", "logging/setLevel")
"""The methods that change a client's subscriptions, in the revisions with ``initialize``."""
_UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
"""The cache time of resources, whose content may change at any time."""
_OF_PARAMETERS: Final = (ErrorCode.VALIDATION_ERROR, ErrorCode.NOT_FOUND)


def catalog_result(method: str, result: dict[str, Any], revision: McpRevision) -> dict[str, Any]:
    """Returns a result in the revision's form."""
    if not revision.stateless:
        return result
    hints = CACHE if method in _CACHED else _UNCACHED if method == _READ else {}
    return with_result_type({**result, **hints}, revision)


def catalog_answer(
    method: str, params: dict[str, Any], result: ToolResult, revision: McpRevision
) -> dict[str, Any] | MessageProblem:
    """Returns the result of a call of a method, or the JSON-RPC error. These methods do not report errors as
    results.
    """
    error = result.error
    missing = missing_capability(error, revision)
    if missing is not None:
        return missing
    if error is not None:
        code = INVALID_PARAMS if error.code in _OF_PARAMETERS else INTERNAL_ERROR
        data: dict[str, Any] = msgspec.to_builtins(error)
        if method == _READ and error.code == ErrorCode.NOT_FOUND:
            code = INVALID_PARAMS if revision.stateless else RESOURCE_NOT_FOUND
            data = {"uri": params.get("uri"), **data}
        return MessageProblem(code, error_text(error) if code == INTERNAL_ERROR else error.message, data)
    if result.metadata.spilled or not isinstance(result.structured, dict):
        return MessageProblem(INTERNAL_ERROR, f"The content is too large for one message. {result.text}")
    return catalog_result(method, result.structured, revision)
