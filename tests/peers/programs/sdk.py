"""Runs the MCP SDK's client and prints its findings as JSON. An interpreter that has the SDK runs it; it imports
nothing of toold.
"""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def ask(transport: Any) -> dict[str, Any]:
    async with Client(transport) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        reply, failed = await asyncio.gather(
            client.call_tool("echo", {"text": "hi"}), client.call_tool("echo", {"txt": "hi"})
        )
        texts = [block.text for block in reply.content if block.type == "text"]
        return {"tools": tools, "text": texts[0], "failed": failed.is_error, "code": failed.structured_content["code"]}


async def main(spec: dict[str, Any]) -> dict[str, Any]:
    if "url" not in spec:
        command, *arguments = spec["command"]
        return await ask(stdio_client(StdioServerParameters(command=command, args=arguments, env=spec["env"])))
    headers = {"authorization": f"Bearer {spec['token']}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http:
        return await ask(streamable_http_client(spec["url"], http_client=http))


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
