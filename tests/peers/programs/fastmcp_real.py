"""Calls tools of MCP servers with FastMCP's client and prints what it makes of the answers, as JSON. An interpreter
that has FastMCP runs it; it imports nothing of toold.
"""

import asyncio
import dataclasses
import json
import sys
from typing import Any

sys.path.pop(0)  # the name of a file here must not shadow the package

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


def _plain(data: Any) -> Any:
    """FastMCP makes objects of the output schema."""
    return dataclasses.asdict(data) if dataclasses.is_dataclass(data) and not isinstance(data, type) else repr(data)


async def answers(server: dict[str, Any]) -> list[Any]:
    if "url" in server:
        transport: Any = StreamableHttpTransport(server["url"])
    else:
        command, *arguments = server["command"]
        transport = StdioTransport(command, arguments, env=server["env"])
    async with Client(transport) as client:
        await client.list_tools()
        found = []
        for tool, given in server["calls"]:
            reply = await client.call_tool(tool, given, raise_on_error=False)
            found.append([type(reply.data).__name__, _plain(reply.data), reply.structured_content, reply.is_error])
        return found


async def main(servers: list[dict[str, Any]]) -> list[Any]:
    return [await answers(server) for server in servers]


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
