"""The comparison for gateways: FastMCP's proxy in front of MCP servers, stateless and with plain JSON.

``.venv/peers/fastmcp/bin/python -P benchmarks/fastmcp_proxy.py SERVERS`` prints its port and a description, and serves
until it is terminated. SERVERS is JSON in the form of ``mcpServers``. It imports nothing of toold.
"""

import asyncio
import json
import socket
import sys
from importlib.metadata import version

from fastmcp.server import create_proxy


def main() -> None:
    """Serve on a free port of the loopback interface."""
    proxy = create_proxy({"mcpServers": json.loads(sys.argv[1])}, name="proxy")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], f"proxy of FastMCP {version('fastmcp')}, stateless, JSON answers", flush=True)
    asyncio.run(
        proxy.run_http_async(
            show_banner=False,
            log_level="error",
            uvicorn_config={"access_log": False, "timeout_keep_alive": 600},  # its first answers take seconds
            json_response=True,
            stateless_http=True,
            sockets=[listener],
        )
    )


if __name__ == "__main__":
    main()
