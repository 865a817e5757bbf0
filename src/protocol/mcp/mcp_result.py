"""MCP results: results of calls, and the server's descriptions of itself. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ...version import __version__
from ..content_text import block_text
from ..error_codes import ErrorCode, ToolError
from ..tool_call import AudioContent, ContentBlock, ResourceLink, TextContent, ToolResult
from .mcp_revision import STATELESS, McpRevision
from .request_envelope import SERVER_KEY, TASKS_EXTENSION

METADATA_KEY: Final = "toold/metadata"
"""The key in a result's ``_meta`` for ``metadata`` of ``call_tool_res``."""
ERROR_KEY: Final = "toold/error"
"""The key in a result's ``_meta`` for the error of a failed call."""
RETAINED_KEY: Final = "toold/retained"
"""The key in a result's ``_meta`` for the handle of an answer that was too large to send."""
TASK_KEY: Final = "io.modelcontextprotocol/related-task"

SERVER_INFO: Final = {"name": "toold", "title": "toold", "version": __version__}
CACHE: Final = {"ttlMs": 60_000, "cacheScope": "private"}
"""How long clients may cache a listing; per principal, because each principal may have different tools."""


class CallToolResult(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of ``tools/call``."""

    content: Sequence[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool = False
    result_type: str | UnsetType = UNSET
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


class _Server(msgspec.Struct, frozen=True):
    name: str
    version: str


_SERVER: Final = _Server("toold", __version__)


def call_result(result: ToolResult, revision: McpRevision) -> CallToolResult:
    """Converts a call's result. Errors are results too: the text is for the model, the metadata for programs.

    Most revisions require structured content to be an object, so other values are wrapped in ``{"result": …}``. If a
    tool has an output schema, clients check structured content against it and demand it of each success. So such a
    tool's errors are only in the metadata, and an answer that spilled to a file is an error with its handle there
    (decision 113).
    """
    meta: dict[str, Any] = (
        {METADATA_KEY: result.metadata} if result.meta is UNSET else {**result.meta, METADATA_KEY: result.metadata}
    )
    if revision.stateless:
        meta[SERVER_KEY] = _SERVER
    kind: str | UnsetType = "complete" if revision.stateless else UNSET
    structured, outputs = result.structured, result.outputs
    if structured is not UNSET and not isinstance(structured, dict):
        structured = {"result": structured}
    unknown = (*(() if revision.links else (ResourceLink,)), *(() if revision.audio else (AudioContent,)))
    if unknown:
        outputs = tuple(TextContent(block_text(block)) if isinstance(block, unknown) else block for block in outputs)
    if result.error is not None:
        meta[ERROR_KEY] = result.error
        if not outputs:
            outputs = (TextContent(error_text(result.error)),)
            structured = UNSET if result.typed is True else result.error
        return CallToolResult(outputs, structured, True, kind, meta)
    if result.metadata.spilled and result.typed is True:
        meta[RETAINED_KEY] = structured
        return CallToolResult(outputs, UNSET, True, kind, meta)
    return CallToolResult(outputs, structured, False, kind, meta)


def error_text(error: ToolError) -> str:
    """Returns a text for the model: the error, and what to do about it."""
    text = f"{error.code}: {error.message}"
    if error.retryable:
        when = "" if error.retry_after_ms is None else f" after {error.retry_after_ms} ms"
        return f"{_sentence(text)} The same call may be sent again{when}."
    if error.executed == "maybe" and error.code != ErrorCode.OUTCOME_UNKNOWN:  # whose message says this already
        return f"{_sentence(text)} The call may have had its effect; check that before you repeat it."
    return text


def _sentence(text: str) -> str:
    """Adds a full stop unless the text already ends a sentence."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def empty_result(revision: McpRevision) -> dict[str, Any]:
    """An empty result."""
    return with_result_type({}, revision)


def initialize_result(revision: McpRevision, instructions: str) -> dict[str, Any]:
    """The result of ``initialize``."""
    return {
        "protocolVersion": revision.name,
        "capabilities": capabilities(revision),
        "serverInfo": SERVER_INFO,
        "instructions": instructions,
    }


def discover_result(revision: McpRevision, instructions: str) -> dict[str, Any]:
    """The result of ``server/discover``."""
    about = {
        "supportedVersions": list(STATELESS),
        "capabilities": capabilities(revision),
        "instructions": instructions,
    }
    return with_result_type({**about, **CACHE}, revision)


def list_result(tools: list[dict[str, Any]], cursor: str | None, revision: McpRevision) -> dict[str, Any]:
    """The result of ``tools/list``; ``cursor`` is the cursor of the next page."""
    page: dict[str, Any] = {"tools": tools} if cursor is None else {"tools": tools, "nextCursor": cursor}
    return with_result_type({**page, **CACHE} if revision.stateless else page, revision)


def capabilities(revision: McpRevision) -> dict[str, Any]:
    """The server's capabilities in this revision."""
    offered: dict[str, Any] = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
    }
    if revision.tasks == "offered":
        return {**offered, "extensions": {TASKS_EXTENSION: {}}}
    if revision.tasks == "requested":
        # No tasks/list: a task's id is a secret that only its client has.
        return {**offered, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
    return offered


def with_result_type(result: dict[str, Any], revision: McpRevision, kind: str = "complete") -> dict[str, Any]:
    """Adds the result's type and the server's name, as the stateless revisions require."""
    if not revision.stateless:
        return result
    return {**result, "resultType": kind, "_meta": {**result.get("_meta", {}), SERVER_KEY: SERVER_INFO}}
