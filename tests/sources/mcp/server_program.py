"""An MCP server for tests, made with the SDK: ``python server_program.py [--http] [--state FILE]``.

The state file is JSON that sets its behaviour; it is read at the start.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

STATE = Path(sys.argv[sys.argv.index("--state") + 1]) if "--state" in sys.argv else None
behaviour: dict[str, Any] = json.loads(STATE.read_text()) if STATE else {}

if behaviour.get("hangs"):
    time.sleep(600)
if behaviour.get("dies"):
    sys.exit("cannot work like this")
if behaviour.get("floods"):
    for number in range(behaviour["floods"]):
        sys.stderr.write(f"line {number} {'x' * 200}\n")
if behaviour.get("child"):
    child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    Path(behaviour["child"]).write_text(str(child.pid))

server = MCPServer("tests' server")


@server.tool(description=behaviour.get("description", "Say it back."))
def echo(text: str) -> str:
    return text


@server.tool()
async def nap(seconds: float, ctx: Context[Any]) -> str:
    """Sleep, and report progress every 0.1 s; write a file on cancellation."""
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await ctx.report_progress(1, 2, "asleep")
            await asyncio.sleep(0.1)
    except BaseException:
        if "cancelled" in behaviour:
            Path(behaviour["cancelled"]).write_text("yes")
        raise
    return "awake"


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool()
def variables() -> dict[str, str]:
    """Show the environment."""
    return dict(os.environ)


@server.tool()
def pid() -> int:
    """Return the process id."""
    return os.getpid()


@server.tool()
def large(size: int) -> str:
    """Return a large answer."""
    return "x" * size


@server.tool()
def picture() -> Image:
    """Return an image."""
    return Image(data=b"12345678", format="png")


if behaviour.get("more"):

    @server.tool()
    def more() -> str:
        """Be new."""
        return "more"


@server.tool()
async def grow(ctx: Context[Any], tell: bool = True) -> str:
    """Add a tool, and announce it if ``tell`` is true."""

    def grown() -> str:
        """Be grown."""
        return "grown"

    server.add_tool(grown)
    if tell:
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
    return "grown"


def main() -> None:
    """Serve."""
    if "--http" not in sys.argv:
        server.run("stdio")
        return
    app = server.streamable_http_app(stateless_http="--stateless" in sys.argv, json_response="--json" in sys.argv)
    port = int(sys.argv[sys.argv.index("--http") + 1])
    listener = socket.create_server(("127.0.0.1", port))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])


if __name__ == "__main__":
    main()
