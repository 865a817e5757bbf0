"""Checking an upstream MCP server once, for `toold sources check`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...tools import SecretLocation, Tool
from ..source import SourceCheck, SourceNote
from ..source_settings import McpSettings
from .mcp_source import McpSource
from .upstream_failures import UpstreamUnavailableError


async def check_mcp(name: str, settings: McpSettings, pins: Path) -> SourceCheck:
    """Connects to the server once, and compares its tools with the pins. Pins nothing."""
    unset = _unset_variable(settings, os.environ)
    if unset is not None:
        return SourceCheck(
            problem=f"the variable {unset} is not set in this command's environment, which is not the daemon's; "
            "set it here to check the server"
        )
    source = McpSource(name, settings, pins, set)
    result = _CheckListener()
    try:
        title = await source.check(result)
    except UpstreamUnavailableError as error:
        return SourceCheck(problem=str(error))
    finally:
        await source.close()
    return SourceCheck(title, tuple(tool.name for tool in result.tools if tool.withheld is None), tuple(result.notes))


def _unset_variable(settings: McpSettings, env: Mapping[str, str]) -> str | None:
    """Returns the first variable that should contain a secret but is not set."""
    secrets = [value for value in settings.env.values() if isinstance(value, SecretLocation)]
    if settings.auth is not None:
        secrets.append(settings.auth.secret)
    return next((secret.env for secret in secrets if secret.env is not None and not env.get(secret.env)), None)


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
