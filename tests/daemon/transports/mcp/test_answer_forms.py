"""The form of conversational answers at ``/mcp``, over real sockets."""

import json
from pathlib import Path
from typing import Any

import pytest
from toold.tools import load_registry

from .conftest import Connect, Serve

CHAT = next(tool for tool in load_registry().tools if tool.name == "chat")


@pytest.mark.parametrize(
    ("path", "headers", "arguments", "is_json"),
    [
        ("/mcp", {}, {}, False),
        ("/mcp", {"Toold-Result-Text": "json"}, {}, True),
        ("/mcp", {}, {"use_websearch": False}, True),
        ("/mcp/old", {}, {}, True),
        ("/mcp/old", {"Toold-Result-Text": "prose"}, {"use_websearch": False}, False),
    ],
    ids=["default", "header", "former name", "toolset", "header before toolset"],
)
async def test_the_header_or_the_toolset_chooses_the_form(
    serve: Serve,
    connect: Connect,
    tmp_path: Path,
    path: str,
    headers: dict[str, str],
    arguments: dict[str, Any],
    is_json: bool,
) -> None:
    """A request shares no state with others, so a former name counts for its own call."""
    (tmp_path / "toold.toml").write_text('[toolsets.old]\nresult_text = "json"\n')
    client = connect(await serve(CHAT), path=path)
    result = await client.call("chat", {"prompt": "Hi", **arguments}, headers=headers)
    texts = [block["text"] for block in result["content"]]
    continuation_id = result["structuredContent"]["continuation_id"]
    if is_json:
        assert json.loads(texts[0])["continuation_id"] == continuation_id
    else:
        assert f"continuation_id: {continuation_id}" in texts[1:]
    plain = await client.call("chat", {"prompt": "Hi"}, headers=headers)
    assert plain["content"][0]["text"].startswith("{") == (is_json and not arguments)
