"""Upstream MCP servers: their sessions by the official SDK's client, their tools and the pins."""
