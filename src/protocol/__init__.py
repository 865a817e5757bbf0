"""Frames, error codes, the handshake and the state of sessions. Pure: no asyncio, no sockets, no clock.

The daemon's transports and dispatch use this package, and so does the client library. It implements docs/protocol.md.
It does not know how bytes are transferred, which tools exist, or which callers wait for a call.
"""
