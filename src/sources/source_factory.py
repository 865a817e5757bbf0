"""Creates and checks sources by the type of their settings."""

from collections.abc import Callable, Container
from typing import Final

from ..protocol.a2a.remote_card import UnusableCardError
from .a2a.a2a_source import A2ASource
from .mcp.mcp_source import McpSource
from .mcp.upstream_failures import UpstreamUnavailableError
from .oauth.sign_in_desk import SignInDesk
from .openapi.openapi_source import OpenApiSource, check_openapi
from .pin_storage import PinStorage, ReadablePins
from .source import Source, SourceCheck
from .source_check import check_once
from .source_content import NoSourceEvents, SourceEvents
from .source_settings import A2ASettings, McpSettings, OpenApiSettings, SourceSettings
from .tool_pins import PinError

_NO_EVENTS: Final = NoSourceEvents()


def open_source(
    name: str,
    settings: SourceSettings,
    *,
    pins: PinStorage,
    taken: Callable[[str], Container[str]],
    events: SourceEvents = _NO_EVENTS,
    desk: SignInDesk | None = None,
) -> Source:
    """Returns the source of these settings, not running yet.

    ``taken`` returns the tool names that other sources use; ``desk`` has the sign-ins; ``events`` receives the source's
    announcements about resources and prompts.
    """
    match settings:
        case OpenApiSettings():
            return OpenApiSource(name, settings)
        case McpSettings():
            return McpSource(name, settings, pins, lambda: taken(name), events, desk)
        case A2ASettings():
            return A2ASource(name, settings, pins, lambda: taken(name))


def may_provide(name: str, settings: SourceSettings, tool: str, *, pins: ReadablePins) -> bool:
    """Whether a tool of this name may come from this source. Does not connect.

    Tools of an API have the source's name as prefix; tools of an MCP server or an agent are in its pins.
    """
    match settings:
        case OpenApiSettings():
            return tool.startswith(f"{name}_")
        case McpSettings() | A2ASettings():
            try:
                known = pins.read_now(name)
            except PinError:
                known = None
            return not known or any(pin.served == tool for pin in known.values())


async def check_source(name: str, settings: SourceSettings, *, pins: PinStorage) -> SourceCheck:
    """Connects to a source once and returns the outcome. Pins stay unchanged."""
    match settings:
        case OpenApiSettings():
            return await check_openapi(name, settings)
        case McpSettings():
            source = McpSource(name, settings, pins, set)
            return await check_once(source, settings.secrets, "server", (UpstreamUnavailableError,))
        case A2ASettings():
            agent = A2ASource(name, settings, pins, set)
            return await check_once(agent, settings.secrets, "agent", (UnusableCardError, PinError))
