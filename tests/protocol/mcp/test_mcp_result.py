"""MCP results, validated against the SDK's types of each revision."""

import json
from typing import Any

import msgspec
import pytest
from mcp_types import methods
from toold.protocol.error_codes import (
    CallCancelledError,
    InvalidArgumentsError,
    OutcomeUnknownError,
    OverCapacityError,
    ToolExecutionError,
)
from toold.protocol.mcp.mcp_result import (
    METADATA_KEY,
    call_result,
    discover_result,
    empty_result,
    error_text,
    initialize_result,
    list_result,
)
from toold.protocol.mcp.mcp_revision import REVISIONS, McpRevision
from toold.protocol.tool_call import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Metadata,
    ResourceLink,
    TextContent,
    Timings,
    ToolResult,
)

METADATA = Metadata(1.5, Timings(0.1, 1.0, 0.0))
EVERY = pytest.mark.parametrize("revision", REVISIONS.values(), ids=REVISIONS)


def wire(result: object) -> dict[str, Any]:
    """Returns the value as encoded."""
    plain: dict[str, Any] = json.loads(msgspec.json.encode(result))
    return plain


@EVERY
def test_a_result(revision: McpRevision) -> None:
    """Text and data are unchanged, with the metadata."""
    result = wire(call_result(ToolResult(METADATA, (TextContent("hi"),), {"a": 1}), revision))
    methods.validate_server_result("tools/call", revision.name, result)
    assert result["content"] == [{"type": "text", "text": "hi"}]
    assert result["structuredContent"] == {"a": 1}
    assert result["_meta"][METADATA_KEY]["latency_ms"] == 1.5
    assert result.get("resultType") == ("complete" if revision.stateless else None)
    assert not result.get("isError")


@EVERY
@pytest.mark.parametrize("value", [[1, 2], "text", 7, 1.5, True, None, []])
def test_data_that_is_not_an_object(revision: McpRevision, value: object) -> None:
    """It is wrapped in an object, under ``result``; null is data, too."""
    result = wire(call_result(ToolResult(METADATA, (TextContent("x"),), value), revision))
    methods.validate_server_result("tools/call", revision.name, result)
    assert result["structuredContent"] == {"result": value}


@EVERY
def test_other_blocks(revision: McpRevision) -> None:
    """Images, audio and resources are unchanged; links and audio are described in the revisions without them."""
    others: tuple[ContentBlock, ...] = (
        ImageContent("iVBORw==", "image/png"),
        AudioContent("UklGRg==", "audio/wav"),
        EmbeddedResource({"uri": "file:///a", "mimeType": "text/plain", "text": "a"}),
    )
    answer = ToolResult(METADATA, (TextContent("all"), *others, ResourceLink("file:///b", "b")))
    result = wire(call_result(answer, revision))
    methods.validate_server_result("tools/call", revision.name, result)
    described = {"type": "text", "text": "[b: file:///b]"}
    last = {"type": "resource_link"} if revision.links else described
    audio = "audio" if revision.audio else "text"
    assert [block["type"] for block in result["content"][:4]] == ["text", "image", audio, "resource"]
    assert result["content"][4].items() >= last.items()


@EVERY
def test_text_only(revision: McpRevision) -> None:
    """A tool that returns no data has no structured content."""
    result = wire(call_result(ToolResult(METADATA, (TextContent("x"),)), revision))
    assert "structuredContent" not in result


@EVERY
def test_errors_are_results(revision: McpRevision) -> None:
    """The text is for the model, the structured content for programs."""
    error = OverCapacityError("Too much.", retry_after_ms=500).to_tool_error()
    result = wire(call_result(ToolResult(METADATA, error=error), revision))
    methods.validate_server_result("tools/call", revision.name, result)
    assert result["isError"] is True
    assert result["structuredContent"] == {
        "code": "OVER_CAPACITY",
        "message": "Too much.",
        "executed": "no",
        "retryable": True,
        "retry_after_ms": 500,
    }
    assert result["content"][0]["text"].startswith("OVER_CAPACITY: Too much.")


@pytest.mark.parametrize(
    ("error", "repeatable", "says", "not_said"),
    [
        (OverCapacityError("Full.", retry_after_ms=500), False, "sent again after 500 ms", "effect"),
        (ToolExecutionError("Broken.", transient=True), True, "may be sent again.", "effect"),
        (OverCapacityError("Full"), False, "Full. The same call", "effect"),
        (ToolExecutionError("Broken"), False, "Broken. The call may have had", "sent again"),
        (ToolExecutionError("Broken."), False, "may have had its effect", "sent again"),
        (OutcomeUnknownError("Cut; look whether it had its effect."), False, "look whether", "all the same"),
        (CallCancelledError("Cut.", executed="no"), False, "Cut.", "effect"),
        (InvalidArgumentsError("text: missing"), False, "VALIDATION_ERROR: text: missing", "sent again"),
    ],
)
def test_error_texts(error: Any, repeatable: bool, says: str, not_said: str) -> None:
    """Whether to retry, and whether there may have been an effect."""
    text = error_text(error.to_tool_error(repeatable=repeatable))
    assert says in text
    assert not_said not in text


@EVERY
def test_server_descriptions(revision: McpRevision) -> None:
    """The types of each revision accept the answer to its first request."""
    tool = {"name": "echo", "inputSchema": {"type": "object"}}
    methods.validate_server_result("tools/list", revision.name, list_result([tool], "c", revision))
    if revision.stateless:
        methods.validate_server_result("server/discover", revision.name, discover_result(revision, "about"))
        assert empty_result(revision)["resultType"] == "complete"
    else:
        methods.validate_server_result("initialize", revision.name, initialize_result(revision, "about"))
        methods.validate_server_result("ping", revision.name, empty_result(revision))
        assert initialize_result(revision, "about")["protocolVersion"] == revision.name


@EVERY
def test_capabilities(revision: McpRevision) -> None:
    """Tools, resources, prompts, completions and log messages, and tasks if the revision has them."""
    about = discover_result(revision, "") if revision.stateless else initialize_result(revision, "")
    has_tasks = {"offered": {"extensions"}, "requested": {"tasks"}, None: set[str]()}[revision.tasks]
    assert set(about["capabilities"]) == {"tools", "resources", "prompts", "completions", "logging"} | has_tasks
