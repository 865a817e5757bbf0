"""Converts MCP messages to calls and results to MCP messages, for every MCP transport. Pure."""
