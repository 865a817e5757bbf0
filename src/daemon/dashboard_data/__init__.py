"""The data and actions of each group of pages of the dashboard.

``daemon/dashboard_host.py`` creates these objects. They know the store, the router and other parts of the daemon. They
must never know HTTP, cookies or HTML.
"""
