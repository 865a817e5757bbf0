"""OAuth for MCP servers: the daemon, or each user, signs in to the authorization server of a source.

``sources/mcp``, which sends the tokens, uses this package, and so does the daemon, which serves the pages of a sign-in
and stores the tokens. The package knows authorization servers, tokens and pending sign-ins; it must not know tools,
calls or sessions.
"""
