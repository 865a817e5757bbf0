"""Environment variables of cs-agent-service about MCP servers, and the sources that they describe. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...sources import BearerAuth, McpSettings, SourceSettingsError, read_sources
from ...tools import SecretLocation

MCP_VARIABLES: Final = ("MCP_SERVERS",)
MAX_SERVERS: Final = 100
"""The maximum number of servers in each of the two forms; each server is a connection."""
_NUMBERED: Final = re.compile(r"MCP_SERVER_(\d{1,4})_(NAME|TRANSPORT|ENDPOINT|URL|TOKEN)")
_FIELDS: Final[Mapping[str, str]] = {
    "server_name": "name",
    "name": "name",
    "transport": "transport",
    "endpoint": "url",
    "url": "url",
    "uri": "url",
    "auth_token": "token",
    "token": "token",
    "requires_user_auth": "user_auth",
    "user_auth": "user_auth",
}
_HTTP: Final = frozenset({"", "http", "https", "streamable-http", "streamable_http", "streamablehttp"})


class VariableAuth(BearerAuth):
    """A token within the JSON of a variable."""

    json_path: tuple[int | str, ...]

    @property
    def secret(self) -> SecretLocation:
        return SecretLocation(self.env, self.file, self.json_path)


@dataclass(slots=True)
class McpEnvironment:
    """The sources by name, each with its variable."""

    sources: dict[str, tuple[object, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def is_mcp_variable(name: str) -> bool:
    """Whether this is a variable of one MCP server."""
    return _NUMBERED.fullmatch(name) is not None


def former_mcp_servers(present: Mapping[str, str]) -> McpEnvironment:
    """The sources that the variables describe, and a note per variable or server. Notes contain no tokens."""
    found = McpEnvironment()
    if "MCP_SERVERS" in present:
        _listed(present["MCP_SERVERS"], found)
    _numbered(present, found)
    return found


def _listed(text: str, found: McpEnvironment) -> None:
    try:
        servers: Any = json.loads(text)
    except (ValueError, RecursionError):
        servers = None
    if not isinstance(servers, list) or not all(isinstance(server, dict) for server in servers):
        found.notes.append("MCP_SERVERS is ignored: it must be a JSON array of objects")
        return
    if len(servers) > MAX_SERVERS:
        found.notes.append(f"MCP_SERVERS: only the first {MAX_SERVERS} servers are read")
    for index, server in enumerate(servers[:MAX_SERVERS]):
        fields: dict[str, Any] = {}
        auth = None
        for key, value in server.items():
            known = _FIELDS.get(key)
            if known is None:
                found.notes.append(f"MCP_SERVERS: the field {key[:40]!r} of server {index + 1} is not understood")
            elif known == "token" and value:
                auth = VariableAuth(type="bearer", env="MCP_SERVERS", json_path=(index, key))
            elif value is not None:
                fields[known] = value
        _add(fields, auth, index + 1, "MCP_SERVERS", found)


def _numbered(present: Mapping[str, str], found: McpEnvironment) -> None:
    numbers = sorted({int(parts[1]): parts[1] for name in present if (parts := _NUMBERED.fullmatch(name))}.items())
    if len(numbers) > MAX_SERVERS:
        found.notes.append(f"MCP_SERVER_…: only the first {MAX_SERVERS} servers are read")
    for number, digits in numbers[:MAX_SERVERS]:
        prefix = f"MCP_SERVER_{digits}_"
        fields = {
            "name": present.get(f"{prefix}NAME"),
            "transport": present.get(f"{prefix}TRANSPORT"),
            "url": present.get(f"{prefix}ENDPOINT") or present.get(f"{prefix}URL"),
        }
        auth = BearerAuth(type="bearer", env=f"{prefix}TOKEN") if f"{prefix}TOKEN" in present else None
        chosen = {name: value for name, value in fields.items() if value is not None}
        variable = next(name for name in present if name.startswith(prefix))
        _add(chosen, auth, number, variable, found)


def _add(fields: Mapping[str, Any], auth: BearerAuth | None, number: int, variable: str, found: McpEnvironment) -> None:
    stated = fields.get("name")
    name = _source_name(stated) if isinstance(stated, str) and stated else f"mcp{number}"
    problem = _problem(fields, auth)
    if problem is None and name in found.sources:
        problem = f"another server is named {name}"
    if problem is None:
        try:
            read_sources({name: {"type": "mcp", "url": fields["url"], "allow_private": True}})
        except SourceSettingsError as error:
            problem = str(error)
    if problem is not None:
        found.notes.append(f"{variable}: the server {name} is ignored: {problem}")
        return
    # The operator named the host; within a container's network, most hosts have private addresses.
    settings = McpSettings(type="mcp", url=fields["url"], auth=auth, allow_private=True)
    found.sources[name] = (settings, variable)
    note = f"{variable}: the server {name} is read as sources.{name}; write [sources.{name}]"
    if _transport(fields) == "sse":
        note += ". Its transport is SSE, which toold does not speak: its URL is asked by Streamable HTTP"
    found.notes.append(note)


def _problem(fields: Mapping[str, Any], auth: BearerAuth | None) -> str | None:
    if _transport(fields) not in {*_HTTP, "sse"}:
        return "its transport must be http, streamable-http or sse; a program is a command of [sources.NAME]"
    if not isinstance(fields.get("url"), str):
        return "it has no endpoint or url"
    if fields.get("user_auth") in (True, "true", "True", "1") and auth is None:
        return "it needs a credential of each user, which toold does not pass on"
    return None


def _transport(fields: Mapping[str, Any]) -> str:
    return str(fields.get("transport", "")).strip().lower()


def _source_name(text: str) -> str:
    """``My Docs`` → ``My_Docs``."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_-")[:32]
    return name if name[:1].isalpha() else f"mcp_{name}"[:32]
