"""OAuth for MCP servers: the daemon, or each user, signs in to the authorization server of a source.

Used by ``sources/mcp``, which sends the tokens, and by the daemon, which serves the pages of a sign-in and keeps the
tokens. It knows authorization servers, tokens and pending sign-ins; it must never know tools, calls or sessions.
"""
