"""Questions to the client of a call: elicitation, sampling and roots, in MCP's format.

Transports, dispatch, sources, the client and `toold mcp` use this package. It defines which questions are valid, who
may answer, and the limits of questions and answers. It must not know connections, the clock or running calls. Pure.
"""
