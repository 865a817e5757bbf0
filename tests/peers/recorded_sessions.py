"""Sessions with MCP servers by the official SDK's client, recorded as the servers' own JSON, and what may differ."""

import base64
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequest,
    CompleteRequest,
    GetPromptRequest,
    ListPromptsRequest,
    ListResourcesRequest,
    ListResourceTemplatesRequest,
    ListToolsRequest,
    ReadResourceRequest,
)
from pydantic import TypeAdapter
from tests.peers.real_servers import Json, RealServer, Step, filled

_KINDS: Any = {
    "tools/list": ListToolsRequest,
    "tools/call": CallToolRequest,
    "resources/list": ListResourcesRequest,
    "resources/templates/list": ListResourceTemplatesRequest,
    "resources/read": ReadResourceRequest,
    "prompts/list": ListPromptsRequest,
    "prompts/get": GetPromptRequest,
    "completion/complete": CompleteRequest,
}
_ENTRIES = {
    "tools/list": ("tools", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
_OF_THE_HOP = ("resultType", "ttlMs", "cacheScope")
"""Fields of 2026-07-28 about one answer, which every server on the way sets itself."""
_OWN_META = ("toold/metadata", "toold/error", "io.modelcontextprotocol/serverInfo")
_UNCHANGED: Any = TypeAdapter(dict[str, Any])
_TIMES = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?"  # ISO 8601
    r"|\w{3} \w{3} \d\d \d{4} \d\d:\d\d:\d\d GMT[+-]\d{4} \([^)]+\)"  # JavaScript's Date
    r"|\d{1,2}:\d\d:\d\d [AP]M"
)


async def recorded(client: Client, server: RealServer, place: Path, *, prefix: str = "") -> list[Json]:
    """The results of the server's steps; ``prefix`` begins the names of its tools."""
    return [await _result(client, step, str(place / server.name), prefix) for step in server.steps]


async def _result(client: Client, step: Step, place: str, prefix: str) -> Json:
    method, params = step
    sent = filled(params, place)
    if method == "tools/call":
        sent["name"] = prefix + sent["name"]
    request = _KINDS[method].model_validate({"method": method, "params": sent})
    try:
        result: Json = await client.session.send_request(request, _UNCHANGED)
    except MCPError as error:
        return {"error": error.code, "message": error.message}
    return result


def differences(server: RealServer, direct: Sequence[Json], through: Sequence[Json]) -> list[str]:
    """The steps whose results differ by more than docs/mcp.md says, with both results."""
    found = []
    for (method, params), one, other in zip(server.steps, direct, through, strict=True):
        if method in _ENTRIES:
            same = _same_entries(method, one, other, f"{server.name}_")
        else:
            same = _plain(one) == _plain(other)
        if not same:
            found.append(f"{server.name}: {method} {params}\n  direct:  {one}\n  through: {other}")
    return found


def _same_entries(method: str, direct: Json, through: Json, prefix: str) -> bool:
    """Each entry of the server is listed, once and unchanged; other sources have entries too."""
    field, key = _ENTRIES[method]
    named = prefix if method == "tools/list" else ""
    listed: dict[str, list[Json]] = {}
    for entry in _plain(through)[field]:
        listed.setdefault(entry[key], []).append(entry)
    for entry in _plain(direct)[field]:
        expected = {**entry, key: named + entry[key]}
        entries = listed.get(expected[key], [])
        for shown in (expected, *entries):
            shown.pop("execution", None)
        if entries != [expected]:
            return False
    return True


def _plain(value: Any) -> Any:
    """Without what every server sets itself, what the daemon adds to ``_meta``, times, and a false ``isError``."""
    if isinstance(value, str):
        return _TIMES.sub("TIME", value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    plain = {name: _plain(one) for name, one in value.items() if name not in _OF_THE_HOP}
    if isinstance(plain.get("blob"), str):
        with suppress(UnicodeDecodeError):
            plain["blob"] = _plain(base64.b64decode(plain["blob"], validate=True).decode())
    if isinstance(plain.get("_meta"), dict):
        plain["_meta"] = {name: one for name, one in plain["_meta"].items() if name not in _OWN_META}
        if not plain["_meta"]:
            del plain["_meta"]
    if plain.get("isError") is False:
        del plain["isError"]
    return plain
