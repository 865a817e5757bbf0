"""What each group of pages of the dashboard shows and does, from the daemon's parts.

``daemon/dashboard_host.py`` makes them. They know the store, the router and the daemon's other parts. They must never
know HTTP, cookies or HTML.
"""
