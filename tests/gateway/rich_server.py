"""An MCP server on loopback whose tools use all that a listing and a result can have."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server

PIXEL = "iVBORw0KGgo="
WRAPPED = {
    "type": "object",
    "properties": {"result": {"type": "string"}},
    "required": ["result"],
    "x-fastmcp-wrap-result": True,
}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "blocks",
        "title": "All blocks",
        "description": "Return every kind of block.",
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}},
        "annotations": {"title": "Blocks", "readOnlyHint": True, "openWorldHint": False},
        "icons": [{"src": "data:image/png;base64,AAAA", "mimeType": "image/png", "sizes": ["16x16"]}],
        "_meta": {"ui": {"resourceUri": "ui://blocks"}, "x": [1, None]},
    },
    {"name": "works", "description": "Work in steps of 0.25 s.", "inputSchema": {"type": "object"}},
    {"name": "bare", "inputSchema": {"type": "object"}},
    {"name": "meta", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "fails", "description": "Fail.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "fails_typed", "description": "Fail.", "inputSchema": {"type": "object"}, "outputSchema": WRAPPED},
    {"name": "large_typed", "description": "Return much.", "inputSchema": {"type": "object"}, "outputSchema": WRAPPED},
    {
        "name": "wrapped",
        "description": "Return data.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "$schema": "https://json-schema.org/draft/2020-12/schema",
        },
        "outputSchema": WRAPPED,
    },
]
BLOCKS: list[dict[str, Any]] = [
    {"type": "image", "data": PIXEL, "mimeType": "image/png", "annotations": {"audience": ["user"], "priority": 0.5}},
    {"type": "text", "text": "between", "annotations": {"audience": ["assistant"]}, "_meta": {"a": {"b": 1}}},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav", "_meta": {"length": 3}},
    {"type": "resource", "resource": {"uri": "demo://a", "mimeType": "text/plain", "text": "in", "_meta": {"c": 1}}},
    {"type": "text", "text": ""},
    {"type": "resource", "resource": {"uri": "demo://b", "blob": "AAAA"}, "annotations": {"priority": 1.0}},
    {
        "type": "resource_link",
        "uri": "demo://c",
        "name": "c",
        "title": "C",
        "description": "A link.",
        "mimeType": "text/html",
        "size": 7,
        "icons": [{"src": "https://example.test/i.png"}],
        "_meta": {"d": []},
    },
]
ERROR_TEXT = "first line\n" + "é" * 30_000 + "\nlast line"


def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "blocks":
            return {"content": BLOCKS * arguments.get("n", 1), "_meta": {"x.test/y": {"z": 1}}}
        case "bare":
            return {"content": []}
        case "fails" | "fails_typed":
            blocks = [{"type": "text", "text": ERROR_TEXT}, BLOCKS[0]]
            return {"content": blocks, "isError": True, "_meta": {"why": "paper"}}
        case "large_typed":
            text = "x" * 300_000
            return {"content": [{"type": "text", "text": text}], "structuredContent": {"result": text}}
        case _:
            text = arguments["text"]
            return {
                "content": [{"type": "text", "text": text}],
                "structuredContent": {"result": text},
                "_meta": {"fastmcp": {"wrap_result": True}},
            }


async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
    return types.ListToolsResult.model_validate({"tools": TOOLS})


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name == "works":
        for step in range((params.arguments or {})["steps"]):
            await context.session.report_progress(step)
            await asyncio.sleep(0.25)
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])
    if params.name == "meta":
        text = json.dumps(dict(params.meta or {}), sort_keys=True)
        return types.CallToolResult.model_validate(
            {"content": [{"type": "text", "text": text}], "_meta": {"x.test/seen": 1, "toold/error": {}}}
        )
    return types.CallToolResult.model_validate(answer(params.name, params.arguments or {}))


@asynccontextmanager
async def serving_richly() -> AsyncIterator[int]:
    """Serve over HTTP; yields the port."""
    server: Server[Any] = Server("rich", instructions="Be gentle.", on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(stateless_http=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        http = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        task = asyncio.create_task(http.serve([listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            http.should_exit = True
            await task
