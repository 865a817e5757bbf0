"""What there is to say of another MCP server without keeping it connected."""

from collections.abc import Sequence
from pathlib import Path

from ...tools import Tool
from ..notes import Note
from ..settings import McpSettings
from ..source import Checked
from .away import AwayError
from .source import McpSource


async def check_mcp(name: str, settings: McpSettings, pins: Path) -> Checked:
    """Connect to a server once, and hold its tools against those that were accepted. Nothing is accepted by it."""
    source = McpSource(name, settings, pins, set)
    seen = _Seen()
    try:
        title = await source.look(seen)
    except AwayError as error:
        return Checked(problem=str(error))
    finally:
        await source.close()
    return Checked(title, tuple(tool.name for tool in seen.tools if tool.withheld is None), tuple(seen.notes))


class _Seen:
    """What a source put out. Satisfies ``Outlet``."""

    def __init__(self) -> None:
        self.tools: Sequence[Tool] = ()
        self.notes: Sequence[Note] = ()

    def put(self, tools: Sequence[Tool], notes: Sequence[Note]) -> None:
        self.tools, self.notes = tools, notes

    def recall(self, tools: Sequence[Tool]) -> None:
        """They are about to be put out."""

    def complain(self, problem: str) -> None:
        """It is raised as well."""
