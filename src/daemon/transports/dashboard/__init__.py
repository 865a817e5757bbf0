"""The dashboard over HTTP: pages below ``/ui``, signed in by a cookie, with live parts by server-sent events.

``daemon/dashboard_host.py`` creates it. It handles cookies, forms and pages. It does not depend on SQL or on how calls
run: its data and actions come through ``DashboardPort``.
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
