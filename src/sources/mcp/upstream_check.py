"""Checking an upstream MCP server once, for `toold sources check`."""

from collections.abc import Sequence
from pathlib import Path

from ...tools import Tool
from ..source import SourceCheck, SourceNote
from ..source_secrets import COMMAND_ENVIRONMENT, unavailable_secrets
from ..source_settings import McpSettings
from .mcp_source import McpSource
from .upstream_failures import UpstreamUnavailableError


async def check_mcp(name: str, settings: McpSettings, pins: Path) -> SourceCheck:
    """Connects to the server once, and compares its tools with the pins, which stay unchanged."""
    missing = unavailable_secrets(settings.secrets, environment=COMMAND_ENVIRONMENT)
    if missing:
        return SourceCheck(problem=f"{'; '.join(missing)}; set it here to check the server")
    source = McpSource(name, settings, pins, set)
    result = _CheckListener()
    try:
        title = await source.check(result)
    except UpstreamUnavailableError as error:
        return SourceCheck(problem=str(error))
    finally:
        await source.close()
    return SourceCheck(title, tuple(tool.name for tool in result.tools if tool.withheld is None), tuple(result.notes))


class _CheckListener:
    """Stores what a source publishes. Implements ``SourceListener``."""

    def __init__(self) -> None:
        self.tools: Sequence[Tool] = ()
        self.notes: Sequence[SourceNote] = ()

    def publish(self, tools: Sequence[Tool], notes: Sequence[SourceNote]) -> None:
        self.tools, self.notes = tools, notes

    def restore(self, tools: Sequence[Tool]) -> None:
        """Ignored: the tools are published next."""

    def report_problem(self, problem: str) -> None:
        """Ignored: the problem is also raised."""
