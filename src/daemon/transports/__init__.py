"""Transports: WebSocket, MCP over HTTP, and the other endpoints of the HTTP port.

A transport converts frames or requests to calls, and results to answers. It does not depend on limits on calls,
timeouts, or what tools do.
"""
