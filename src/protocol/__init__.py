"""Frames, error codes, the handshake and the session's book of calls. Pure: no asyncio, no socket, no clock.

Who calls it: the daemon's transports and dispatch, and the client library. What it knows: docs/protocol.md.
What it must never know: how bytes travel, which tools exist, who waits.
"""
