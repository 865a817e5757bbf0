"""A hand-written server of an older revision, which does what the SDK's server does not.

It lists its tools in pages, writes noise to standard output, and records the received methods in a file.
"""

import json
import sys
from pathlib import Path
from typing import Any

NOTES = Path(sys.argv[1])
PAGES = 3


def tool(name: str, schema: Any = None) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"} if schema is None else schema}


tools = [
    tool("one"),
    tool("two"),
    tool("odd/name"),
    tool("broken", {"type": "object", "properties": {"a": {"type": "odd"}}}),
    tool("never"),
]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(params: dict[str, Any]) -> dict[str, Any] | None:
    match params["name"]:
        case "never":
            return None
        case "one":
            tools.append(tool("three"))
            send(method="notifications/tools/list_changed")
            return {"content": [{"type": "text", "text": "changed"}]}
        case _:
            return {
                "content": [{"type": "text", "text": params["name"]}],
                "structuredContent": {"name": params["name"]},
            }


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "legacy", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            page = int(params.get("cursor") or 0)
            listed = {"tools": tools[page::PAGES]}
            return listed | ({"nextCursor": str(page + 1)} if page + 1 < PAGES else {})
        case "tools/call":
            return call(params)
    raise LookupError(method)


for line in sys.stdin:
    message = json.loads(line)
    with NOTES.open("a") as notes:
        notes.write(f"{message['method']}\n")
    if "id" not in message:
        continue
    sys.stdout.write("this is not JSON\n\n")
    try:
        result = answer(message["method"], message.get("params") or {})
    except LookupError:
        send(id=message["id"], error={"code": -32601, "message": "Method not found"})
    else:
        if result is not None:
            send(id=message["id"], result=result)
