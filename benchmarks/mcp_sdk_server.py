"""The comparison for ``/mcp``: the MCP SDK's server, which answers with plain JSON, stateless or with sessions.

``python -m benchmarks.mcp_sdk_server stateless|sessions`` prints its port and a description, and serves until it is
terminated; with ``stdio`` it serves its parent process. It imports nothing of toold, so that an environment with the
SDK alone can run it too: ``.venv/peers/sdk/bin/python -P benchmarks/mcp_sdk_server.py``.
"""

import asyncio
import importlib.util
import logging
import socket
import sys
from importlib.metadata import version

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("benchmark")


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Say it back. Text alone, as the daemon answers."""
    return text


@server.tool(structured_output=False)
async def wait(text: str) -> str:
    """Echo after 50 ms."""
    await asyncio.sleep(0.05)
    return text


def main() -> None:
    """Serve on a free port of the loopback interface, or over the standard streams."""
    logging.getLogger("mcp").setLevel(logging.ERROR)
    mode = sys.argv[1]
    if mode == "stdio":
        server.run("stdio")
        return
    app = server.streamable_http_app(stateless_http=mode == "stateless", json_response=True)
    # With the protocol TCP: asyncio sets TCP_NODELAY only on such sockets.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    loop = "uvloop" if importlib.util.find_spec("uvloop") else "asyncio"
    about = f"MCPServer of mcp {version('mcp')}, {mode}, JSON answers; uvicorn, h11, {loop}"
    print(listener.getsockname()[1], about, flush=True)
    # Without the longer time, connections of a busy machine are closed between their opening and their calls.
    config = uvicorn.Config(app, http="h11", loop=loop, log_level="error", access_log=False, timeout_keep_alive=600)
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
