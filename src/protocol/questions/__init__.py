"""Questions to the client of a call: elicitation, sampling and roots, in MCP's format.

Transports, dispatch, sources, the client and `toold mcp` use it. It knows what may be asked, who may answer, and the
limits of questions and answers. It must never know connections, the clock or running calls. Pure.
"""
