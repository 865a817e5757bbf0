"""A hand-written MCP server over standard streams, by the standard library only, whose tool ``lie`` answers as its
argument ``how`` says. ``python -S lying_program.py``.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
TOOLS = [
    {
        "name": "lie",
        "description": "Lie.",
        "inputSchema": {"type": "object", "properties": {"how": {"type": "string"}}, "required": ["how"]},
    }
]
FLOOD = 3000


def write(line: str) -> None:
    """Write a line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def send(**message: Any) -> None:
    """Send a message."""
    write(json.dumps({"jsonrpc": "2.0", **message}))


def text(said: str) -> Json:
    """A result."""
    return {"content": [{"type": "text", "text": said}]}


def rubbish(call_id: Any) -> None:
    """Lines without a message."""
    for line in ("rubbish", "[" * 5000, "\x00\x1b[2J", '{"jsonrpc": "2.0"}', "null", "[]", '"text"'):
        write(line)
    send(id=call_id, result=text("after rubbish"))


def flood(call_id: Any) -> None:
    """Messages that no one awaits."""
    for number in range(FLOOD):
        send(method="notifications/message", params={"level": "info", "data": f"{number}"})
    send(id=call_id, result=text("after the flood"))


def foreign_progress(call_id: Any) -> None:
    """Progress of calls that do not exist."""
    for token in (0, -1, 10**9, "x", None):
        params = {"progressToken": token, "progress": 1, "message": "owned"}
        send(method="notifications/progress", params=params)
    send(id=call_id, result=text("after progress"))


def requests(call_id: Any) -> None:
    """Requests that are not valid, and whose answers it ignores."""
    send(id="ask", method="elicitation/create", params={"message": 5})
    send(id="roots", method="roots/list")
    send(id="no", method="no/such/method")
    send(id=call_id, result=text("after requests"))


def twice(call_id: Any) -> None:
    """Two answers."""
    for said in ("first", "second"):
        send(id=call_id, result=text(said))


def close(_: Any) -> None:
    """Live on without output."""
    os.close(1)
    time.sleep(600)


def nested(member: str) -> Callable[[Any], None]:
    """A result that is nested deeply."""
    deep = "[" * 700 + "]" * 700
    return lambda call_id: write(
        f'{{"jsonrpc":"2.0","id":{call_id},"result":{{"content":[],"{member}":{{"x":{deep}}}}}}}'
    )


LIES: dict[str, Callable[[Any], None]] = {
    "of no call": lambda _: send(id=987_654, result=text("for someone")),
    "of another shape": lambda call_id: send(id=call_id, result={"content": 5}),
    "of no tool": lambda call_id: send(id=call_id, result={"task": {"taskId": "x", "status": "working"}}),
    "nested data": nested("structuredContent"),
    "nested metadata": nested("_meta"),
    "neither result nor error": lambda call_id: send(id=call_id),
    "rubbish": rubbish,
    "twice": twice,
    "a flood": flood,
    "progress of others": foreign_progress,
    "a request": requests,
    "the end": lambda _: sys.exit("I have had enough"),
    "closed": close,
}


def handle(message: Json) -> None:
    """Answer a message."""
    match message.get("method"):
        case "initialize":
            info = {"name": "liar", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            send(id=message["id"], result=result)
        case "tools/list":
            send(id=message["id"], result={"tools": TOOLS})
        case "tools/call":
            LIES[message["params"]["arguments"]["how"]](message["id"])
        case None:
            pass
        case _ if "id" in message:
            send(id=message["id"], error={"code": -32601, "message": "Method not found"})


for line in sys.stdin:
    handle(json.loads(line))
