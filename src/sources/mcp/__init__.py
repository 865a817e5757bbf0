"""Other MCP servers by the official SDK's client: kept connected, their tools pinned, and called on one session."""
