"""``version``: which daemon this is."""

import platform
from typing import Any

from ...protocol.frames import PROTOCOL_VERSION
from ...version import __version__
from ..tool import Arguments, tool
from ..tool_context import ToolContext


@tool("version", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def version(_arguments: Arguments, _context: ToolContext) -> dict[str, Any]:
    """The daemon's name, its version, the protocol that it speaks and the Python that runs it."""
    return {
        "name": "toold",
        "version": __version__,
        "protocol": PROTOCOL_VERSION,
        "python": platform.python_version(),
    }
