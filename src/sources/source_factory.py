"""Which kind of source is made of which settings."""

from collections.abc import Callable, Container
from pathlib import Path

from .mcp.mcp_source import McpSource
from .mcp.tool_pins import PinError, PinFile
from .mcp.upstream_check import check_mcp
from .openapi.openapi_source import OpenApiSource, check_openapi
from .source import Source, SourceCheck
from .source_settings import McpSettings, OpenApiSettings, SourceSettings


def open_source(name: str, settings: SourceSettings, *, pins: Path, taken: Callable[[str], Container[str]]) -> Source:
    """The source of these settings, not at work yet. ``pins`` is the directory of what was accepted of other servers'
    tools, ``taken`` tells which names all but this source's tools have.
    """
    match settings:
        case OpenApiSettings():
            return OpenApiSource(name, settings)
        case McpSettings():
            return McpSource(name, settings, pins, lambda: taken(name))


def may_have(name: str, settings: SourceSettings, tool: str, *, pins: Path) -> bool:
    """Whether a tool of this name may be a source's, as far as it is known without asking: an operation's has the
    source's name before it, and of a server those that were accepted are known.
    """
    match settings:
        case OpenApiSettings():
            return tool.startswith(f"{name}_")
        case McpSettings():
            try:
                known = PinFile(pins, name).read()
            except PinError:
                known = None
            return not known or any(pin.served == tool for pin in known.values())


async def check_source(name: str, settings: SourceSettings, *, pins: Path) -> SourceCheck:
    """What there is to say of a source without keeping it."""
    match settings:
        case OpenApiSettings():
            return await check_openapi(name, settings)
        case McpSettings():
            return await check_mcp(name, settings, pins)
