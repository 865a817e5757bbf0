"""A call's result, and the server's account of itself, in MCP's words. Pure."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ...version import __version__
from ..error_codes import ErrorCode, ToolError
from ..tool_call import ContentBlock, ResourceLink, TextContent, ToolResult
from .mcp_revision import STATELESS, McpRevision
from .request_envelope import SERVER_KEY, TASKS_EXTENSION

METADATA_KEY: Final = "toold/metadata"
"""In a result's ``_meta``: what ``metadata`` of a ``call_tool_res`` has."""
TASK_KEY: Final = "io.modelcontextprotocol/related-task"

SERVER_INFO: Final = {"name": "toold", "title": "toold", "version": __version__}
CACHE: Final = {"ttlMs": 60_000, "cacheScope": "private"}
"""How long a client may go by a listing, and that it holds for its principal alone: another may have other tools."""


class CallToolResult(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of ``tools/call``."""

    content: tuple[ContentBlock, ...]
    structured_content: Any = UNSET
    is_error: bool = False
    result_type: str | UnsetType = UNSET
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


class _Server(msgspec.Struct, frozen=True):
    name: str
    version: str


_SERVER: Final = _Server("toold", __version__)


def call_result(result: ToolResult, revision: McpRevision) -> CallToolResult:
    """A tool's answer. Errors are answers too: the text is for a model to read, the structured content for programs.

    Structured content is an object in most revisions, so any other value stands in one, under ``result``.
    """
    meta: dict[str, Any] = {METADATA_KEY: result.metadata}
    if revision.stateless:
        meta[SERVER_KEY] = _SERVER
    kind: str | UnsetType = "complete" if revision.stateless else UNSET
    if result.error is not None:
        return CallToolResult((TextContent(error_text(result.error)),), result.error, True, kind, meta)
    structured = result.structured
    if structured is not UNSET and not isinstance(structured, dict):
        structured = {"result": structured}
    outputs = result.outputs
    if not revision.links:  # what they are stands in the text
        outputs = tuple(block for block in outputs if not isinstance(block, ResourceLink))
    return CallToolResult(outputs, structured, False, kind, meta)


def error_text(error: ToolError) -> str:
    """What went wrong and what to do about it, for a model to act on."""
    said = f"{error.code}: {error.message}"
    if error.retryable:
        when = "" if error.retry_after_ms is None else f" after {error.retry_after_ms} ms"
        return f"{_sentence(said)} The same call may be sent again{when}."
    if error.executed == "maybe" and error.code != ErrorCode.OUTCOME_UNKNOWN:  # whose words say so already
        return f"{_sentence(said)} It may have had its effect all the same; look before you call it again."
    return said


def _sentence(said: str) -> str:
    """Its end as well, which others' words may lack."""
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def empty_result(revision: McpRevision) -> dict[str, Any]:
    """An empty result."""
    return _with_result_type({}, revision)


def initialize_result(revision: McpRevision, instructions: str, *, list_changed: bool = False) -> dict[str, Any]:
    """The result of ``initialize``, by a transport that ``tells`` of other tools or does not."""
    return {
        "protocolVersion": revision.name,
        "capabilities": capabilities(revision, list_changed=list_changed),
        "serverInfo": SERVER_INFO,
        "instructions": instructions,
    }


def discover_result(revision: McpRevision, instructions: str) -> dict[str, Any]:
    """The result of ``server/discover``."""
    about = {
        "supportedVersions": list(STATELESS),
        "capabilities": capabilities(revision, list_changed=True),
        "instructions": instructions,
    }
    return _with_result_type({**about, **CACHE}, revision)


def list_result(tools: list[dict[str, Any]], cursor: str | None, revision: McpRevision) -> dict[str, Any]:
    """The result of ``tools/list``; the cursor is that of the next page."""
    page: dict[str, Any] = {"tools": tools} if cursor is None else {"tools": tools, "nextCursor": cursor}
    return _with_result_type({**page, **CACHE} if revision.stateless else page, revision)


def capabilities(revision: McpRevision, *, list_changed: bool) -> dict[str, Any]:
    """What this server can, for a client of this revision, which it ``tells`` of other tools or has no way to."""
    tools = {"listChanged": True} if list_changed else {}
    if revision.tasks == "offered":
        return {"tools": tools, "extensions": {TASKS_EXTENSION: {}}}
    if revision.tasks == "asked":
        # No list: a task's id is the key to it, and only its client has it.
        return {"tools": tools, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
    return {"tools": tools}


def _with_result_type(result: dict[str, Any], revision: McpRevision, kind: str = "complete") -> dict[str, Any]:
    """The result as the revision has it: the stateless ones name its type and its server."""
    if not revision.stateless:
        return result
    return {**result, "resultType": kind, "_meta": {SERVER_KEY: SERVER_INFO}}
