"""Runs FastMCP's client and prints its findings as JSON. An interpreter that has FastMCP runs it; it imports nothing
of toold.
"""

import asyncio
import json
import sys
from typing import Any

sys.path.pop(0)  # this file's name must not shadow the package

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main(spec: dict[str, Any]) -> dict[str, Any]:
    if "url" in spec:
        transport: Any = StreamableHttpTransport(spec["url"], headers={"Authorization": f"Bearer {spec['token']}"})
    else:
        command, *arguments = spec["command"]
        transport = StdioTransport(command, arguments, env=spec["env"], keep_alive=False)
    async with Client(transport) as client:
        tools = [tool.name for tool in await client.list_tools()]
        reply, failed = await asyncio.gather(
            client.call_tool("echo", {"text": "hi"}), client.call_tool("echo", {"txt": "hi"}, raise_on_error=False)
        )
        code = failed.structured_content["code"]
        return {"tools": tools, "text": reply.content[0].text, "failed": failed.is_error, "code": code}


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
