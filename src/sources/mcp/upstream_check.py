"""What there is to say of another MCP server without keeping it connected."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...tools import Tool
from ..source import SourceCheck
from ..source_notes import SourceNote
from ..source_secret import SourceSecret
from ..source_settings import McpSettings
from .mcp_source import McpSource
from .upstream_reconnect import UpstreamUnavailableError


async def check_mcp(name: str, settings: McpSettings, pins: Path) -> SourceCheck:
    """Connect to a server once, and hold its tools against those that were accepted. Nothing is accepted by it."""
    unset = _unset(settings, os.environ)
    if unset is not None:
        return SourceCheck(
            problem=f"the variable {unset} is not set in this command's environment, which is not the daemon's; "
            "set it here to check the server"
        )
    source = McpSource(name, settings, pins, set)
    seen = _Seen()
    try:
        title = await source.look(seen)
    except UpstreamUnavailableError as error:
        return SourceCheck(problem=str(error))
    finally:
        await source.close()
    return SourceCheck(title, tuple(tool.name for tool in seen.tools if tool.withheld is None), tuple(seen.notes))


def _unset(settings: McpSettings, env: Mapping[str, str]) -> str | None:
    """A variable that a secret should be in, and is not."""
    secrets = [value for value in settings.env.values() if isinstance(value, SourceSecret)]
    if settings.auth is not None:
        secrets.append(settings.auth.secret)
    return next((secret.env for secret in secrets if secret.env is not None and not env.get(secret.env)), None)


class _Seen:
    """What a source put out. Satisfies ``Outlet``."""

    def __init__(self) -> None:
        self.tools: Sequence[Tool] = ()
        self.notes: Sequence[SourceNote] = ()

    def put(self, tools: Sequence[Tool], notes: Sequence[SourceNote]) -> None:
        self.tools, self.notes = tools, notes

    def recall(self, tools: Sequence[Tool]) -> None:
        """They are about to be put out."""

    def complain(self, problem: str) -> None:
        """It is raised as well."""
