"""Several daemons on one database: which nodes are alive, who holds a session, relays to its holder, requests
to peers.
"""
