"""The cost of listing, calling and searching tools, by the number of tools of a synthetic API."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from websockets.sync.client import ClientConnection, connect

from ..servers import Server, daemon
from .curves import Curve

_OWN: Final = ("echo", "search_tools")
"""The built-in tools in the toolset."""
_SECONDS: Final = 0.8
"""The duration of repeated requests: CPU time has a resolution of 10 ms."""
_START_S: Final = 60.0
_HELLO: Final = {"op": "hello", "session_id": "benchmark"}
_ids = count(1)


def tools(numbers: Sequence[int], say: Callable[[str], None]) -> list[Curve]:
    """The server's CPU time for sequential requests of one client."""
    listing, calling, finding, starting = [], [], [], []
    for number in numbers:
        say(f"{number:,} tools")
        with tempfile.TemporaryDirectory(prefix="toold-bench-") as directory:
            document = Path(directory) / "api.json"
            document.write_text(json.dumps(api_document(number - len(_OWN), _operation)), encoding="utf-8")
            with daemon(config=_config(document)) as server, connected(server.port) as socket:
                wait_for_tools(socket, number)
                server.settle()
                starting.append((number, server.cpu_s() * 1000))
                listing.append((number, _timed(server, socket, {"op": "list_tools"})))
                calling.append((number, _timed(server, socket, _call("echo", text="a line of text"))))
                finding.append((number, _timed(server, socket, _call("search_tools", query="create a deal"))))
    return [
        Curve("start with the source", "tools", "CPU ms until all are listed", 1, starting),
        Curve("list_tools", "tools", "CPU ms", 1, listing),
        Curve("a call of echo", "tools", "CPU ms", 0, calling),
        Curve("search_tools", "tools", "CPU ms", 1, finding),
    ]


def _config(document: Path) -> str:
    return f"""
default_toolset = "bench"
list_init = false
[toolsets.bench]
include = {json.dumps([*_OWN, "api_*"])}
{source_table("api", document)}"""


def source_table(name: str, document: Path) -> str:
    """The configuration of a source of which nothing is called."""
    return f"""[sources.{name}]
type = "openapi"
spec = {json.dumps(str(document))}
base_url = "http://127.0.0.1:9"
allow_private = true
"""


def api_document(operations: int, operation: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """A synthetic API with this number of operations; ``operation`` returns one by its number."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Records", "version": "1"},
        "paths": {f"/records{number}/{{id}}": {"post": operation(number)} for number in range(operations)},
    }


def _operation(number: int) -> dict[str, Any]:
    verb, record = ("create", "update", "archive", "export")[number % 4], f"record{number}"
    text = {"type": "string", "description": f"A text of the {record}."}
    fields = {"name": text, "note": text, "amount": {"type": "number"}, "tags": {"type": "array", "items": text}}
    return {
        "operationId": f"{verb}_{record}",
        "summary": f"{verb.capitalize()} a {record} of the account, and return it with its fields.",
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
        "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": fields}}}},
        "responses": {"200": {"description": "It is done."}},
    }


@contextmanager
def connected(port: int) -> Iterator[ClientConnection]:
    """A connection after its hello."""
    with connect(f"ws://127.0.0.1:{port}/", compression=None, max_size=None, proxy=None) as socket:
        _ask(socket, _HELLO)
        yield socket


def _call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"op": "call_tool", "name": tool, "arguments": arguments}


def _ask(socket: ClientConnection, frame: dict[str, Any]) -> bytes:
    """Returns the raw answer.

    Raises:
        RuntimeError: the answer is an error.
    """
    socket.send(json.dumps({**frame, "request_id": next(_ids)}))
    answer = socket.recv(decode=False)
    if b'"error":{' in answer or b'"op":"error"' in answer:
        raise RuntimeError(f"the daemon answered {answer[:300]!r}")
    return answer


def wait_for_tools(socket: ClientConnection, number: int) -> None:
    """Wait until ``number`` tools are listed.

    Raises:
        RuntimeError: they were not listed in time.
    """
    give_up = time.perf_counter() + _START_S
    while len(json.loads(_ask(socket, {"op": "list_tools"}))["tools"]) != number:
        if time.perf_counter() > give_up:
            raise RuntimeError(f"{number} tools were not listed within {_START_S:.0f} s")
        time.sleep(0.2)


def _timed(server: Server, socket: ClientConnection, frame: dict[str, Any]) -> float:
    began, used, times = time.perf_counter(), server.cpu_s(), 0
    while time.perf_counter() < began + _SECONDS:
        _ask(socket, frame)
        times += 1
    return max(0.01, server.cpu_s() - used) * 1000 / times
