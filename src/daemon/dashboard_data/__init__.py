"""The data and actions of each group of pages of the dashboard.

``daemon/dashboard_host.py`` creates these objects. They use the store, the router and other parts of the daemon, and do
not depend on HTTP, cookies or HTML.
"""
