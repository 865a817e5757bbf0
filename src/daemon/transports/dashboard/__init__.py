"""The dashboard over HTTP: pages below ``/ui``, signed in by a cookie, with live parts by server-sent events.

``daemon/dashboard_host.py`` makes it. It knows cookies, forms and pages. It must never know SQL or how calls run: what
it shows and does comes through ``DashboardPort``.
"""

from .browser_sessions import SESSIONS_FILE, BrowserSessions
from .dashboard_port import DashboardPorts, KeptResult, Viewer
from .dashboard_server import DashboardServer
from .live_feed import LiveFeed
from .tool_list import seen_tools

__all__ = [
    "SESSIONS_FILE",
    "BrowserSessions",
    "DashboardPorts",
    "DashboardServer",
    "KeptResult",
    "LiveFeed",
    "Viewer",
    "seen_tools",
]
