"""The client of a request of the HTTP port, and the toolset for the request."""

from collections.abc import Mapping
from typing import Final

from ...protocol.authorization import Authorization
from ...protocol.error_codes import CallError
from ...protocol.tool_call import ClientInfo
from ...tools import Tool, ToolCatalog

_CLIENT_CHARS: Final = 64


def client_of(headers: Mapping[str, str], transport: str) -> ClientInfo:
    """The client's name and version from the beginning of ``User-Agent``; without this header, the transport's name."""
    name, _, version = headers.get("user-agent", "").partition(" ")
    if not version:
        name, _, version = name.rpartition("/")
    return ClientInfo(name[:_CLIENT_CHARS] or transport, version[:_CLIENT_CHARS])


def toolset_with(catalog: ToolCatalog, access: Authorization, tool: str) -> str | None:
    """The caller's default toolset if it has the tool, otherwise the first of its toolsets with the tool; None without
    one."""
    return next((name for name in toolsets_of(catalog, access) if find(catalog, name, tool) is not None), None)


def toolsets_of(catalog: ToolCatalog, access: Authorization) -> list[str]:
    """The caller's toolsets, its default first."""
    usable = access.usable_toolsets(catalog.names)
    first = access.default_toolset(catalog.names, catalog.default)
    return [name for name in dict.fromkeys((first, *usable)) if name in usable]


def find(catalog: ToolCatalog, toolset: str, tool: str) -> Tool | None:
    """A tool of a toolset."""
    try:
        return catalog.find_tool(toolset, tool, usable=None)
    except CallError:
        return None
