"""Calls tools of two MCP servers with FastMCP's client and prints what it makes of the answers, as JSON. An interpreter
that has FastMCP runs it; it imports nothing of toold.
"""

import asyncio
import json
import sys
from typing import Any

sys.path.pop(0)  # the name of a file here must not shadow the package

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport


async def read(url: str, headers: dict[str, str]) -> list[Any]:
    async with Client(StreamableHttpTransport(url, headers=headers)) as client:
        await client.list_tools()
        reply = await client.call_tool("wrapped", {"text": "hi"})
        failed = await client.call_tool("fails_typed", {}, raise_on_error=False)
        kinds = [block.type for block in failed.content]
        return [reply.data, reply.structured_content, failed.is_error, failed.structured_content, kinds]


async def main(servers: list[tuple[str, dict[str, str]]]) -> list[list[Any]]:
    return [await read(url, headers) for url, headers in servers]


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
