"""The comparison for ``/mcp``: a FastMCP server that answers with plain JSON, stateless or with sessions.

``.venv/peers/fastmcp/bin/python -P benchmarks/fastmcp_server.py stateless|sessions`` prints its port and a description,
and serves until it is terminated. It imports nothing of toold: its environment has only FastMCP. ``-P`` prevents the
import of this directory's ``mcp.py`` instead of the SDK.
"""

import asyncio
import socket
import sys
from importlib.metadata import version

from fastmcp import FastMCP

server = FastMCP("benchmark")


@server.tool(output_schema=None)  # type: ignore[untyped-decorator]  # FastMCP is in its own environment alone
async def echo(text: str) -> str:
    """Say it back. A coroutine, since functions run in threads here, and text alone, as the daemon answers."""
    return text


@server.tool(output_schema=None)  # type: ignore[untyped-decorator]  # as above
async def wait(text: str) -> str:
    """Echo after 50 ms."""
    await asyncio.sleep(0.05)
    return text


def main() -> None:
    """Serve on a free port of the loopback interface, as ``FastMCP.run`` does: on asyncio's own loop."""
    mode = sys.argv[1]
    # With the protocol TCP: asyncio sets TCP_NODELAY only on such sockets.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    about = f"FastMCP {version('fastmcp')} on mcp {version('mcp')}, {mode}, JSON answers; uvicorn, h11, asyncio"
    print(listener.getsockname()[1], about, flush=True)
    asyncio.run(
        server.run_http_async(
            show_banner=False,
            log_level="error",
            uvicorn_config={"http": "h11", "access_log": False, "timeout_keep_alive": 600},  # on a busy machine
            json_response=True,
            stateless_http=mode == "stateless",
            sockets=[listener],
        )
    )


if __name__ == "__main__":
    main()
