"""Several daemons on one database: which nodes live, who holds a session, relays to its holder, requests to peers."""
