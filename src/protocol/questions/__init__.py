"""Questions to the client of a call: elicitation, sampling and roots, in MCP's format.

Transports, dispatch, sources, the client and `toold mcp` use it. It knows what may be asked, by whom it may be
answered, and the bounds of both. It must never know connections, the clock or running calls. Pure.
"""
