"""Sources: what others have becomes tools of the daemon's, on its one road. REST APIs by their OpenAPI documents, and
other MCP servers.

Who calls it: the daemon, which keeps the sources that are configured, and the command that checks them. What it knows:
tools, and what a call lends to one. What it must never know: sessions, limits, transports, where results lie.
"""

from .mcp.tool_pins import PINS_DIRECTORY, PinError
from .source import Source, SourceCheck, SourceOutlet
from .source_factory import check_source, may_have, open_source
from .source_manager import SourceManager, SourceState
from .source_notes import SourceNote
from .source_settings import SourceSettings, SourceSettingsError, anchored, read_sources

__all__ = [
    "PINS_DIRECTORY",
    "PinError",
    "Source",
    "SourceCheck",
    "SourceManager",
    "SourceNote",
    "SourceOutlet",
    "SourceSettings",
    "SourceSettingsError",
    "SourceState",
    "anchored",
    "check_source",
    "may_have",
    "open_source",
    "read_sources",
]
