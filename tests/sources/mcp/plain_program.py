"""A server with the tools of ``server_program.py`` that starts ten times as fast: the standard library only, over
standard input and output. For tests of what the daemon does with a server, not of the exchange with the SDK.

``python -S plain_program.py --state FILE``: the file is JSON that sets its behaviour; it is read at the start.
"""

import base64
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

behaviour: dict[str, Any] = json.loads(Path(sys.argv[sys.argv.index("--state") + 1]).read_text())

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

_sending = threading.Lock()
_cancelled: dict[object, threading.Event] = {}
_SCHEMAS: dict[str, dict[str, str]] = {
    "echo": {"text": "string"},
    "nap": {"seconds": "number"},
    "fail": {"why": "string"},
    "variables": {},
    "pid": {},
    "large": {"size": "integer"},
    "picture": {},
    "grow": {"tell": "boolean"},
}
if behaviour.get("more"):
    _SCHEMAS["more"] = {}


def send(**message: Any) -> None:
    """Send one message."""
    with _sending:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    """The definitions of the tools."""
    described = {"echo": behaviour.get("description", "Say it back.")}
    return [
        {
            "name": name,
            "description": described.get(name, f"The tool {name}."),
            "inputSchema": {
                "type": "object",
                "properties": {argument: {"type": kind} for argument, kind in arguments.items()},
                "required": [argument for argument in arguments if argument != "tell"],
            },
        }
        for name, arguments in _SCHEMAS.items()
    ]


def nap(call_id: object, seconds: float) -> str:
    """Sleep until the call is cancelled; then write a file."""
    if _cancelled[call_id].wait(seconds) and "cancelled" in behaviour:
        Path(behaviour["cancelled"]).write_text("yes")
    return "awake"


def grow(tell: bool = True) -> str:
    """Add a tool, and announce it if ``tell`` is true."""
    _SCHEMAS["grown"] = {}
    if tell:
        send(method="notifications/tools/list_changed")
    return "grown"


def value_of(call_id: object, name: str, arguments: dict[str, Any]) -> Any:
    """What a tool returns."""
    match name:
        case "echo":
            return arguments["text"]
        case "nap":
            return nap(call_id, arguments["seconds"])
        case "variables":
            return dict(os.environ)
        case "pid":
            return os.getpid()
        case "large":
            return "x" * arguments["size"]
        case "grow":
            return grow(**arguments)
        case _:
            return name


def result_of(call_id: object, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a call in the form of the SDK's server."""
    if name == "fail":
        return {"content": [{"type": "text", "text": arguments["why"]}], "isError": True}
    if name == "picture":
        image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"12345678").decode()}
        return {"content": [image]}
    value = value_of(call_id, name, arguments)
    structured = value if isinstance(value, dict) else {"result": value}
    text = json.dumps(value) if isinstance(value, dict) else str(value)
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}


def call(call_id: object, params: dict[str, Any]) -> None:
    """Run a tool and send its result, unless the call was cancelled."""
    result = result_of(call_id, params["name"], params.get("arguments") or {})
    if not _cancelled.pop(call_id).is_set():
        send(id=call_id, result=result)


def handle(message: dict[str, Any]) -> None:
    """Answer one message."""
    params = message.get("params") or {}
    match message["method"]:
        case "initialize":
            capabilities = {"tools": {"listChanged": True}}
            info = {"name": "plain", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
            if "instructions" in behaviour:
                result["instructions"] = behaviour["instructions"]
            send(id=message["id"], result=result)
        case "tools/list":
            send(id=message["id"], result={"tools": tools()})
        case "tools/call":
            _cancelled[message["id"]] = threading.Event()
            threading.Thread(target=call, args=(message["id"], params), daemon=True).start()
        case "notifications/cancelled":
            if params.get("requestId") in _cancelled:
                _cancelled[params["requestId"]].set()
        case _ if "id" in message:
            send(id=message["id"], error={"code": -32601, "message": "Method not found"})


for line in sys.stdin:
    handle(json.loads(line))
