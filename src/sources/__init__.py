"""Sources: what others have becomes tools of the daemon's, on its one road. REST APIs by their OpenAPI documents, and
other MCP servers.

Who calls it: the daemon, which keeps the sources that are configured, and the command that checks them. What it knows:
tools, and what a call lends to one. What it must never know: sessions, limits, transports, where results lie.
"""

from .keeper import SourceKeeper, SourceState
from .mcp.pins import PINS_FOLDER, PinError
from .notes import Note
from .opening import check_source, may_have, open_source
from .settings import SourceSettings, SourceSettingsError, anchored, read_sources
from .source import Checked, Outlet, Source

__all__ = [
    "PINS_FOLDER",
    "Checked",
    "Note",
    "Outlet",
    "PinError",
    "Source",
    "SourceKeeper",
    "SourceSettings",
    "SourceSettingsError",
    "SourceState",
    "anchored",
    "check_source",
    "may_have",
    "open_source",
    "read_sources",
]
