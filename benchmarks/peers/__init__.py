"""The daemon compared with a bare ``websockets`` echo server, FastMCP's server and the MCP SDK's: ``python -m
benchmarks.peers``.

``__main__`` begins, ``measure`` runs the rounds, ``report`` shows them; what calls is ``benchmarks.driving``, in the
load generator's process.
"""
