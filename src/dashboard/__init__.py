"""The pages of the dashboard: templates, their filters, and the assets that they load. Pure.

The daemon's transport ``transports/dashboard`` renders pages with it. It knows the rows of status reports and how they
are shown to people. It must never know sockets, cookies, sessions, the store, or how calls run.
"""

from .page_assets import Asset, AssetError, Assets, load_assets
from .pages import Pages

__all__ = ["Asset", "AssetError", "Assets", "Pages", "load_assets"]
