"""``workers = N``: one service of N processes on one machine, which share the ports and one PostgreSQL database.

``toold serve`` uses this package. The **supervisor** holds the state directory, reserves the ports, starts N
**workers**, restarts those that end, and passes signals on. A worker is a node of the cluster like any other. The
supervisor knows processes, ports and files. It must not know calls, tools or sessions.
"""
