"""Runs google-adk's McpToolset and prints its findings as JSON. An interpreter that has google-adk runs it; it imports
nothing of toold.
"""

import asyncio
import json
import sys
from typing import Any

from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
from mcp import StdioServerParameters


async def main(spec: dict[str, Any]) -> dict[str, Any]:
    if "url" in spec:
        headers = {"Authorization": f"Bearer {spec['token']}"}
        way: Any = StreamableHTTPConnectionParams(url=spec["url"], headers=headers, timeout=60)
    else:
        command, *arguments = spec["command"]
        server = StdioServerParameters(command=command, args=arguments, env=spec["env"])
        way = StdioConnectionParams(server_params=server, timeout=60)
    toolset = McpToolset(connection_params=way)
    try:
        tools = {tool.name: tool for tool in await toolset.get_tools()}
        reply = await tools["echo"].run_async(args={"text": "hi"}, tool_context=None)
        failed = await tools["echo"].run_async(args={"txt": "hi"}, tool_context=None)
    finally:
        await toolset.close()
    return {
        "tools": list(tools),
        "text": reply["content"][0]["text"],
        "failed": failed.get("isError", failed.get("is_error")),
        "code": (failed.get("structuredContent") or failed.get("structured_content") or {}).get("code"),
    }


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
