"""Several daemons on one database: the living nodes, the holders of sessions, relays to a holder, requests to peers."""
